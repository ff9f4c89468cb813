import CRUDEventLoop
import CRUDModel
import CRUDStorage
import CRUDWire

/// A request in flight: what its reply needs, and what its session is charged for it.
///
/// It is one object from its start until its backend is done with it. The reply comes first, and may come earlier where
/// the backend takes too long; only with ``ended()`` the session stops counting it.
class PendingRequest: RequestCompletion {
    final let session: Session
    /// The request's id as it was sent; nil for a notification.
    final let id: [UInt8]?
    final let deadline: Duration
    final let kind: RequestKind
    /// The collection that it uses; nil if it concerns none.
    final let collection: Collection?
    /// How many bytes the session is charged for it.
    final let chargedBytes: Int
    private let array: BatchArray?

    /// - Parameter chargedBytes: nil: its own text.
    init(_ call: borrowing Call, _ kind: RequestKind, on collection: Collection?, chargedBytes: Int? = nil) {
        session = call.session
        array = call.array
        id = if let id = call.request.id { call.copy(id) } else { nil }
        deadline = call.deadline
        self.chargedBytes = chargedBytes ?? call.chargedBytes
        self.kind = kind
        self.collection = collection
    }

    /// The collections that it uses beside the first.
    var otherCollections: [Collection] { [] }

    /// As how many requests in flight it counts.
    var weight: Int { 1 }

    /// Counts it; to be called before it is handed over.
    final func start() {
        session.started(self)
        array?.started(kind, on: collection?.client)
    }

    // MARK: RequestCompletion

    /// What a peer has sent before it went away is still executed, but reading for nobody is not worthwhile.
    final var isWanted: Bool { kind != .read || session.isWanted }

    final func complete(with item: WorkItem, _ range: Range<Int>) {
        reply(with: item, range)
        hasReplied()
    }

    final func fail(_ error: CRUDError, isOverdue: Bool) {
        reply(with: error, isOverdue: isOverdue)
        hasReplied()
    }

    final func ended() { session.ended(self) }

    // MARK: Replies

    /// Replies with what a backend has done.
    func reply(with item: WorkItem, _ range: Range<Int>) {}

    /// Replies that it has failed.
    func reply(with error: CRUDError, isOverdue: Bool) { reply(with: error) }

    final func reply(with error: CRUDError) {
        reply { _ throws(CRUDError) in throw error }
    }

    /// Replies, unless the request is a notification.
    ///
    /// - Parameter result: appends the value of `result`, or throws the error to reply instead.
    final func reply(_ result: (inout StreamBuffer) throws(CRUDError) -> Void) {
        guard let id else { return }
        _ = session.reply(to: id.span, in: array) { output throws(CRUDError) in
            try result(&output)
            return true
        }
    }

    /// Counts the reply in the array that the request is an element of.
    final func hasReplied() {
        guard let array else { return }
        array.replied()
        session.finishIfComplete(array)
    }
}
