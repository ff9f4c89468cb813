import Synchronization

@testable import CRUDQuery

/// Refuses a job some times before it executes it.
final class BusyExecutor: LongRecordExecutor {
    private let refusals: Int
    private let count = Atomic(0)
    private let jobs = Atomic(0)

    init(refusals: Int) {
        self.refusals = refusals
    }

    /// How many jobs have been executed.
    var executed: Int { jobs.load(ordering: .relaxed) }

    func execute(_ job: @escaping @Sendable (_ yield: @escaping () -> Void) -> Void) -> Bool {
        guard count.add(1, ordering: .relaxed).newValue % (refusals + 1) == 0 else { return false }
        jobs.add(1, ordering: .relaxed)
        job {}
        return true
    }
}
