import CRUDCore
import CRUDWire

/// What one session has under way on one collection.
///
/// Requests of one session on one collection take effect as if they were executed one after the other. Writes keep
/// their order by themselves, since a backend takes them in order; a read waits for the writes before it, and a write
/// for the reads before it where those are not made at once. What has to wait makes all that follows on the same
/// collection wait behind it, and nothing else. A request on several collections waits on the lane of each, and starts
/// when it comes first and is admitted on all of them.
struct Lane {
    let collection: Collection
    var writesUnderWay = 0
    var readsUnderWay = 0
    var sweepsUnderWay = 0
    /// Frames that wait, in order.
    var waiting: [WaitingRequest] = []

    /// Counts a request that starts, or with −1 ends.
    mutating func count(_ kind: RequestKind, _ change: Int) {
        switch kind {
        case .read: readsUnderWay += change
        case .write: writesUnderWay += change
        case .sweep: sweepsUnderWay += change
        }
    }

    /// Whether a request of that kind may start now, given that nothing waits before it.
    func admits(_ kind: RequestKind) -> Bool {
        if collection.isHeld { return false }
        return switch kind {
        case .read: writesUnderWay == 0 && sweepsUnderWay == 0
        case .write, .sweep: readsUnderWay == 0 && sweepsUnderWay == 0
        }
    }

    var isIdle: Bool { writesUnderWay == 0 && readsUnderWay == 0 && sweepsUnderWay == 0 && waiting.isEmpty }
}

/// How a request touches its collection.
enum RequestKind {
    case read, write
    /// Deletes as it goes, slice by slice: begins behind the writes before it, and everything else waits for its end.
    case sweep
}

/// A request that waits for its turn: its frame's text, and how long it may wait.
final class WaitingRequest {
    let text: [UInt8]
    let deadline: Duration
    let kind: RequestKind
    let collections: [Collection]

    init(text: [UInt8], deadline: Duration, kind: RequestKind, collections: [Collection]) {
        self.text = text
        self.deadline = deadline
        self.kind = kind
        self.collections = collections
    }
}
