import CRUDJSON
import CRUDModel
import CRUDPluginHost

/// Goes through a collection by id, slice by slice, and shows the records that match to a visitor.
final class Walk: FoundRecordSink {
    /// What a visitor says to a record.
    enum Answer {
        /// Go on.
        case taken
        /// It is taken, and enough.
        case last
        /// There is no room for it: the walk stops before it.
        case refused
    }

    typealias Visitor =
        (_ id: [UInt8], _ item: Span<UInt8>, _ revision: UnsafeRawBufferPointer) throws(CRUDError) -> Answer

    private let target: SearchTarget
    private let prefix: [UInt8]
    private let evaluator: Evaluator?
    private let needsItems: Bool
    /// The last record that has been gone past.
    private(set) var position: [UInt8]
    /// How many records have been looked at.
    private(set) var scanned = 0
    private var slice = Slice()
    private var visitor: Visitor?
    private var hasStopped = false
    private var isRefused = false
    private var fault: CRUDError?
    /// The text of an item that is stored otherwise.
    private var text: [UInt8] = []

    /// - Parameters:
    ///   - needsItems: whether the visitor looks at items.
    ///   - after: where to begin; empty: at the start.
    /// - Throws: `invalid_query` for a filter that cannot be evaluated.
    init(
        _ target: SearchTarget, filter: Filter?, prefix: [UInt8], needsItems: Bool, after: [UInt8] = []
    ) throws(CRUDError) {
        self.target = target
        self.prefix = prefix
        evaluator = if let filter { Evaluator(try FilterEvaluator(filter)) } else { nil }
        self.needsItems = needsItems || filter != nil
        position = after
    }

    /// Boxes what cannot be copied.
    private final class Evaluator {
        var filter: FilterEvaluator

        init(_ filter: consuming FilterEvaluator) {
            self.filter = filter
        }
    }

    /// How a slice has ended.
    enum End {
        case sliceIsOver
        /// The visitor has had enough.
        case visitorIsFull
        case collectionIsOver
    }

    /// Goes on for a slice.
    func advance(with reader: BackendReader, visitor: @escaping Visitor) throws(CRUDError) -> End {
        self.visitor = visitor
        defer { self.visitor = nil }
        slice = Slice()
        hasStopped = false
        isRefused = false
        try reader.scan(target.stored, after: position, prefix: prefix, withItems: needsItems, into: self)
        if let fault { throw fault }
        if isRefused { return .visitorIsFull }
        return hasStopped ? .sliceIsOver : .collectionIsOver
    }

    /// The walk is to go on behind this id; empty: from the start.
    func goOn(behind id: [UInt8]) { position = id }

    /// Whether a record matches.
    ///
    /// - Throws: `corrupt` where its item is no JSON.
    func matches(_ item: Span<UInt8>, id: [UInt8]) throws(CRUDError) -> Bool {
        guard let evaluator else { return true }
        do throws(JSONSyntaxError) {
            return try evaluator.filter.matches(item)
        } catch {
            throw .corruptItem(id: id)
        }
    }

    func receive(id: UnsafeRawBufferPointer, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer) -> Bool {
        do throws(CRUDError) {
            let answer: Answer
            // The buffer is valid during this call.
            let stored = unsafe item.bindMemory(to: UInt8.self).span
            if target.codec.keepsText || !needsItems {
                answer = try look(id: id, item: stored, revision: revision)
            } else {
                text.removeAll(keepingCapacity: text.capacity <= 1 << 20)
                try target.codec.decode(stored: stored, into: &text, maximumBytes: target.maximumItemBytes)
                let text = text
                answer = try look(id: id, item: text.span, revision: revision)
            }
            isRefused = answer != .taken
            if answer != .refused {
                scanned += 1
                position.removeAll(keepingCapacity: true)
                position.append(contentsOf: id)
            }
            hasStopped = isRefused || slice.isOver()
        } catch {
            fault = error
            hasStopped = true
        }
        return !hasStopped
    }

    private func look(
        id: UnsafeRawBufferPointer, item: Span<UInt8>, revision: UnsafeRawBufferPointer
    ) throws(CRUDError) -> Answer {
        if let evaluator {
            do throws(JSONSyntaxError) {
                guard try evaluator.filter.matches(item) else { return .taken }
            } catch {
                throw .corruptItem(id: Array(id))
            }
        }
        return try visitor?(Array(id), item, revision) ?? .taken
    }
}
