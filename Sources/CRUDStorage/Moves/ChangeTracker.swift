import CRUDModel
import CRUDPluginABI
import CRUDPluginHost
import Synchronization

/// The ids of the records of one collection that have been written since somebody began to ask.
///
/// An id is noted before its writer is told, so that whoever has taken the ids and reads the records then, reads what
/// has been acknowledged.
final class ChangeTracker: Sendable {
    /// Tracked as long as it is open: its handle is gone when the storage is closed, or the collection dropped.
    let collection: BackendCollection
    private let ids = Mutex<Set<[UInt8]>>([])
    private let pause = Atomic<Int64>(0)

    init(_ collection: BackendCollection) {
        self.collection = collection
    }

    var count: Int { ids.withLock { $0.count } }

    /// How long the backend is to wait after each commit that writes the collection, so that its writers are not faster
    /// than whoever follows.
    var commitPause: Duration {
        get { .nanoseconds(pause.load(ordering: .relaxed)) }
        set { pause.store(Int64(newValue / .nanoseconds(1)), ordering: .relaxed) }
    }

    func note(_ changed: some Sequence<[UInt8]>) { ids.withLock { $0.formUnion(changed) } }

    /// Takes some of the ids, or all; they are noted again when their records are written again.
    func take(atMost maximum: Int) -> [[UInt8]] {
        ids.withLock { ids in
            let taken = Array(ids.prefix(maximum))
            ids.subtract(taken)
            return taken
        }
    }
}

/// The trackers of a backend's collections, of which there are none most of the time.
final class ChangeTrackers: CommitObserver {
    private let trackers = Mutex<[ChangeTracker]>([])
    private let isUsed = Atomic(false)
    private let pause = Mutex(Duration.zero)

    func add(_ tracker: ChangeTracker) {
        trackers.withLock { trackers in
            trackers.append(tracker)
            isUsed.store(true, ordering: .sequentiallyConsistent)
        }
    }

    func remove(_ tracker: ChangeTracker) {
        trackers.withLock { trackers in
            trackers.removeAll { $0 === tracker }
            isUsed.store(!trackers.isEmpty, ordering: .sequentiallyConsistent)
        }
    }

    func willCommit(_: UnsafeBufferPointer<crudd_mutation>) {}

    func committed(_ commit: borrowing Commit) {
        guard isUsed.load(ordering: .sequentiallyConsistent) else { return }
        let mutations = commit.mutations
        for tracker in trackers.withLock({ $0 }) {
            guard let handle = tracker.collection.handle else { continue }
            // Whatever the outcome: it may not be known, and to look once more costs little.
            let written = mutations.lazy.filter { $0.collection == handle && $0.isWrite }
                .compactMap { $0.record.map { Array($0.pointee.id.buffer) } }
            if written.isEmpty { continue }
            tracker.note(written)
            pause.withLock { $0 = max($0, tracker.commitPause) }
        }
    }

    /// How long to wait because of what has been committed since the last call.
    func takePause() -> Duration {
        guard isUsed.load(ordering: .relaxed) else { return .zero }
        return pause.withLock { pause in
            defer { pause = .zero }
            return pause
        }
    }
}

extension crudd_mutation {
    fileprivate var isWrite: Bool { kind == UInt32(CRUDD_PUT) || kind == UInt32(CRUDD_REMOVE) }
}
