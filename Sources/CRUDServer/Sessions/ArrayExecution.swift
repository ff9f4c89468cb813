import CRUDCore
import CRUDEventLoop
import CRUDJSON
import CRUDPluginHost

/// A batch array on its way: its elements take effect in order, one array answers them.
///
/// An element starts once those before it have been carried out, or is handed over together with them where all are
/// writes to one backend, which takes them in order anyway; so a thousand creates are one commit. While elements are
/// left the session's later frames wait.
final class ArrayExecution {
    /// The frame, kept because elements outlive the turn it came in.
    let text: [UInt8]
    let elements: [JSONSlice]
    /// When elements that have not been started have waited long enough, on the loop's clock.
    let deadline: Duration
    /// The first element that has not been started.
    var next = 0
    /// How many elements have been started and not answered.
    private(set) var underWay = 0
    /// The backend that all elements under way write to; nil if they do anything else.
    private(set) var writingTo: Backend?
    /// Room for the items that answers hold to the elements under way.
    private var budgetUnderWay: ReplyBudget?
    /// The responses so far, with commas between.
    private var responses = StreamBuffer()
    private let maximumBytes: Int
    /// Whether the responses, errors at last, do not fit a frame; they have been dropped.
    private(set) var isTooLong = false

    /// - Parameter maximumBytes: the longest frame.
    init(text: [UInt8], elements: [JSONSlice], deadline: Duration, maximumBytes: Int) {
        self.text = text
        self.elements = elements
        self.deadline = deadline
        self.maximumBytes = maximumBytes
    }

    /// Whether all elements have been answered.
    var isFinished: Bool { next == elements.count && underWay == 0 }

    /// Counts an element that a backend has in hand.
    func started(_ kind: RequestKind, on backend: Backend) {
        let isFirstOrSame = underWay == 0 || writingTo === backend
        underWay += 1
        writingTo = kind == .write && isFirstOrSame ? backend : nil
    }

    /// Counts an element that somebody else has in hand.
    func started() {
        underWay += 1
        writingTo = nil
    }

    /// Counts an element that has been given back.
    func ended() {
        underWay -= 1
        if underWay == 0 { budgetUnderWay = nil }
    }

    /// How long a response may be that still fits the answer, with its commas and brackets.
    var room: Int { maximumBytes - responses.count - 3 }

    /// Room for the items that the answer to the next element holds, which it has in common with those under way. What
    /// elements answer without items is left aside.
    var budget: ReplyBudget {
        if underWay > 0, let budgetUnderWay { return budgetUnderWay }
        let budget = ReplyBudget(bytes: room - (elements.count - next) * ReplyWriter.sizeWithoutItem)
        budgetUnderWay = budget
        return budget
    }

    /// Adds the response that `reply` holds.
    func add(_ reply: ReplyWriter) {
        if reply.count > room { isTooLong = true }
        guard !isTooLong else {
            responses = StreamBuffer()
            return
        }
        if !responses.isEmpty { responses.append(UInt8(ascii: ",")) }
        reply.move(to: &responses)
    }

    /// Appends the whole answer as one frame; nothing where no element is answered.
    func finish(into output: inout StreamBuffer) {
        guard !responses.isEmpty else { return }
        output.append(bigEndian: UInt32(truncatingIfNeeded: responses.count + 2))
        output.append(UInt8(ascii: "["))
        output.append(responses)
        output.append(UInt8(ascii: "]"))
    }
}
