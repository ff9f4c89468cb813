import Synchronization

/// What a search does with a record about which it takes long to decide, which is more than a millisecond.
///
/// The thread that scans has other things to do: it writes for a backend, or is an event loop's. So the search copies
/// the record, stops its scan there, and resumes it when another thread has decided.
package enum LongRecords: Sendable {
    /// It decides at once, as about any other record.
    case inPlace
    /// It ends: on another thread it begins again.
    case none
    case handedOver(any LongRecordExecutor)
}

/// Threads for what takes long with one record: a search's decision about it, or making the item of a write.
package protocol LongRecordExecutor: Sendable {
    /// Executes a job on another thread.
    ///
    /// - Parameter job: is given a function to call once in a few milliseconds, which lets other jobs continue.
    /// - Returns: false where no thread is free.
    func execute(_ job: @escaping @Sendable (_ yield: @escaping () -> Void) -> Void) -> Bool
}

/// Work with a long record on another thread.
package final class LongRecordJob: Sendable {
    private let executor: any LongRecordExecutor
    private let job: @Sendable (_ yield: @escaping () -> Void) -> Void
    private let state = Atomic(State.waiting)

    private enum State: UInt8, AtomicRepresentable {
        case waiting, started, done
    }

    /// - Parameter job: must not be in use by any other thread until ``isDone``.
    package init(
        by executor: any LongRecordExecutor, _ job: @escaping @Sendable (_ yield: @escaping () -> Void) -> Void
    ) {
        self.executor = executor
        self.job = job
        start()
    }

    /// Whether it has been done.
    package var isDone: Bool { state.load(ordering: .acquiring) == .done }

    /// Whether it is still to be waited for. It is started here if no thread was free before.
    package func isPending() -> Bool {
        start()
        return !isDone
    }

    private func start() {
        guard state.load(ordering: .relaxed) == .waiting else { return }
        state.store(.started, ordering: .relaxed)
        let isStarted = executor.execute { [self] yield in
            job(yield)
            state.store(.done, ordering: .releasing)
        }
        if !isStarted { state.store(.waiting, ordering: .relaxed) }
    }
}

/// A record that is kept longer than its visit.
struct RecordCopy {
    private let id: [UInt8]
    private let item: [UInt8]
    private let revision: [UInt8]
    private let expiresAt: Int64
    private let sequence: UInt64
    private let position: UInt64

    init(_ record: FoundRecord) {
        id = Array(record.id)
        item = Array(record.item)
        revision = Array(record.revision)
        expiresAt = record.expiresAt
        sequence = record.sequence
        position = record.position
    }

    var byteCount: Int { id.count + item.count + revision.count }

    /// The record as it was when it was visited, while `body` runs.
    func withRecord(_ body: (FoundRecord) -> Void) {
        id.withUnsafeBytes { id in
            item.withUnsafeBytes { item in
                revision.withUnsafeBytes { revision in
                    body(
                        FoundRecord(
                            id: id, item: item, revision: revision, expiresAt: expiresAt, sequence: sequence,
                            position: position))
                }
            }
        }
    }
}
