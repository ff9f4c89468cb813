import CRUDJSON
import CRUDStorage
import CRUDWire

/// How a request uses its collections.
enum RequestKind {
    /// Reads records by their ids.
    case read
    /// Looks for records, or counts them, which takes another way to the backend than reads.
    case scan
    case write
    /// Deletes slice by slice, makes long items, or rebuilds indexes: it waits for the writes before it, and everything
    /// behind it waits for its end.
    case slicedWrite
    /// Waits for what others write: no request waits for it.
    case follow
}

/// The order of effect within one session, collection by collection.
///
/// Requests of one session on one collection take effect as if they were executed one after another. Writes keep their
/// order by themselves, since a backend executes them in order. A read waits for the writes before it, and a write for
/// those reads before it that are still in flight. No read may see an older state than one before it: the reads of one
/// iteration of the loop go to the backend together and are executed in their order, a later one waits for them, and a
/// scan and what reads before or after it wait for each other. A read that has found more than there is room for begins
/// again later, before all that waits. A request that waits makes all later ones on its collection wait behind it, and
/// nothing else. A request on several collections waits for each of them: it starts when it is the first that waits on
/// every one, and none has anything in flight that it has to wait for.
struct CollectionOrder {
    private struct Entry {
        let collection: Collection
        var reads = 0
        /// The iteration in which the last of them began.
        var iterationOfReads: UInt64 = 0
        /// Those that wait to begin again.
        var unfinishedReads = 0
        var scans = 0
        var writes = 0
        var slicedWrites = 0
        var waiting: [WaitingRequest] = []

        /// Whether a request may start in an iteration, given that none waits before it.
        func admits(_ kind: RequestKind, in iteration: UInt64) -> Bool {
            if collection.isQuiesced { return false }
            let hasReads = reads > 0 || unfinishedReads > 0
            return switch kind {
            case .read:
                admitsUnfinishedRead(in: iteration) && unfinishedReads == 0 && scans == 0 && writes == 0
                    && slicedWrites == 0
            case .scan: !hasReads && scans == 0 && writes == 0 && slicedWrites == 0
            case .write: !hasReads && scans == 0 && slicedWrites == 0
            case .slicedWrite: !hasReads && scans == 0 && slicedWrites == 0 && writes == 0
            case .follow: true
            }
        }

        func admitsUnfinishedRead(in iteration: UInt64) -> Bool { reads == 0 || iterationOfReads == iteration }

        var isIdle: Bool {
            reads == 0 && unfinishedReads == 0 && scans == 0 && writes == 0 && slicedWrites == 0 && waiting.isEmpty
        }
    }

    /// Those with requests in flight or waiting: few, and mostly none.
    private var entries: [Entry] = []
    /// Where the entry of a collection is.
    private var places = ObjectIndex<Collection>()

    var hasWaiting: Bool { entries.contains { !$0.waiting.isEmpty } }

    /// Whether a request may start now.
    ///
    /// - Parameter hasWaited: whether it is the first of those that wait.
    func admits(
        _ kind: RequestKind, on collection: Collection, hasWaited: Bool, in iteration: UInt64
    ) -> Bool {
        guard let index = index(of: collection) else { return !collection.isQuiesced }
        return (hasWaited || entries[index].waiting.isEmpty) && entries[index].admits(kind, in: iteration)
    }

    /// Whether reads are in flight, which one that is executed at once would overtake.
    func hasReads(on collection: Collection) -> Bool {
        index(of: collection).map { entries[$0].reads > 0 } ?? false
    }

    /// Counts a request that is in flight, or with −1 one that no longer is.
    mutating func count(_ kind: RequestKind, on collection: Collection, _ change: Int, in iteration: UInt64) {
        let index = makeEntry(for: collection)
        switch kind {
        case .read:
            entries[index].reads += change
            if change > 0 { entries[index].iterationOfReads = iteration }
        case .scan: entries[index].scans += change
        case .write: entries[index].writes += change
        case .slicedWrite: entries[index].slicedWrites += change
        case .follow: break
        }
        collection.requestsInFlight += change
    }

    // MARK: Reads that begin again

    /// Whether one may begin again in an iteration.
    func admitsUnfinishedRead(on collection: Collection, in iteration: UInt64) -> Bool {
        index(of: collection).map { entries[$0].admitsUnfinishedRead(in: iteration) } ?? true
    }

    /// A read that was in flight waits to begin again.
    mutating func suspendRead(on collection: Collection) {
        let index = makeEntry(for: collection)
        entries[index].reads -= 1
        entries[index].unfinishedReads += 1
    }

    /// It is in flight again.
    mutating func resumeRead(on collection: Collection, in iteration: UInt64) {
        let index = makeEntry(for: collection)
        entries[index].unfinishedReads -= 1
        entries[index].reads += 1
        entries[index].iterationOfReads = iteration
    }

    // MARK: Waiting

    /// - Parameter isFirst: whether those that wait already are behind it.
    mutating func enqueue(_ request: WaitingRequest, isFirst: Bool) {
        for collection in request.collections {
            let index = makeEntry(for: collection)
            entries[index].waiting.insert(request, at: isFirst ? 0 : entries[index].waiting.count)
            collection.requestsInFlight += 1
        }
    }

    /// A request that may start in an iteration.
    func firstStartable(in iteration: UInt64) -> WaitingRequest? {
        firstWaiting { request in
            request.collections.allSatisfy { collection in
                guard let index = index(of: collection) else { return true }
                return entries[index].waiting.first === request && entries[index].admits(request.kind, in: iteration)
            }
        }
    }

    /// Takes out a request that has waited long enough.
    mutating func takeOverdue(at now: Duration) -> WaitingRequest? {
        let overdue = firstWaiting { $0.deadline <= now }
        if let overdue { remove(overdue) }
        return overdue
    }

    /// Takes out the request with an id, as its client has sent that.
    mutating func take(withID id: [UInt8]) -> WaitingRequest? {
        for entry in entries {
            guard let request = entry.waiting.first(where: { $0.hasID(id) }) else { continue }
            remove(request)
            return request
        }
        return nil
    }

    /// The first request on any collection for which that is true. One on several collections is asked at one of them.
    private func firstWaiting(where isWanted: (WaitingRequest) -> Bool) -> WaitingRequest? {
        for entry in entries {
            if let first = entry.waiting.first, first.collections[0] === entry.collection, isWanted(first) {
                return first
            }
        }
        return nil
    }

    mutating func remove(_ request: WaitingRequest) {
        for collection in request.collections {
            if let index = index(of: collection) { entries[index].waiting.removeAll { $0 === request } }
            collection.requestsInFlight -= 1
        }
    }

    // MARK: Entries

    mutating func removeIdle() {
        let count = entries.count
        entries.removeAll(where: \.isIdle)
        if entries.count < count { places.replace(with: entries.lazy.map(\.collection)) }
    }

    private func index(of collection: Collection) -> Int? { places[collection] }

    private mutating func makeEntry(for collection: Collection) -> Int {
        if let index = index(of: collection) { return index }
        entries.append(Entry(collection: collection))
        places.append(collection)
        return entries.count - 1
    }
}

/// Why a request does not start yet.
struct Wait {
    /// What it uses.
    var collections: [Collection]
    var kind: RequestKind
    /// The room that it needs for its reply.
    var neededBytes = 1
    /// What has been read of a `record.batch`, lest it be read again.
    var operations: [Operation]?
}

/// A request that waits for earlier ones, or for room: its frame's text, and for how long.
final class WaitingRequest {
    let text: [UInt8]
    /// Where its id is in the text; nil for a notification.
    private let id: JSONSlice?
    let arrival: Duration
    let deadline: Duration
    let wait: Wait

    var kind: RequestKind { wait.kind }
    var collections: [Collection] { wait.collections }
    var neededBytes: Int { wait.neededBytes }

    func hasID(_ id: [UInt8]) -> Bool { self.id.map { text[$0.range].elementsEqual(id) } ?? false }

    init(text: [UInt8], id: JSONSlice?, arrival: Duration, deadline: Duration, _ wait: Wait) {
        self.text = text
        self.id = id
        self.arrival = arrival
        self.deadline = deadline
        self.wait = wait
    }
}
