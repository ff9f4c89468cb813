import CRUDModel
import CRUDPluginHost
import Synchronization

/// A deletion of the records that match, on the thread that writes: a batch of them is found, then removed on condition
/// that each still has the revision that was found.
package final class BulkDelete: WriteTask, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    private let request: SearchRequest
    private var matches: (any MatchExecutor)?
    private let deleted = Atomic<Int>(0)
    /// Why a record could not be removed.
    private var firstError: CRUDError?
    /// How many records have been deleted so far.
    package var count: Int { deleted.load(ordering: .relaxed) }
    /// Records whose stored bytes cannot be decoded; at most 100 ids.
    package var corrupt: [[UInt8]] { matches?.corrupt ?? [] }

    package init(
        of request: SearchRequest, in collection: BackendCollection, deliver: @escaping @Sendable (WorkItem) -> Void
    ) {
        self.request = request
        super.init(on: collection, deliver: deliver)
    }

    /// Deletes some of them.
    override func advance(with storage: OpenStorage) -> Bool {
        do throws(CRUDError) {
            let matches = if let matches { matches } else { try begin(storage) }
            self.matches = matches
            if !isAbandoned {
                let isLast = try find(matches, storage)
                storage.failures.note(corrupt: matches.corrupt, in: collection)
                guard try remove(matches, storage), isLast else { return false }
                if let firstError { fail(firstError) }
            }
        } catch {
            fail(error)
        }
        return true
    }

    override var isWaiting: Bool { !isAbandoned && matches?.isWaiting == true }

    override func end() { matches?.end() }

    private func begin(_ storage: OpenStorage) throws(CRUDError) -> any MatchExecutor {
        if let child = storage.opened.child, child.canSearch,
            let number = collection.number(inChild: child.identity)
        {
            return RemoteMatches(request, in: collection, number: number, of: child, storage.failures)
        }
        return try LocalMatches(request, in: collection)
    }

    private func find(_ matches: any MatchExecutor, _ storage: OpenStorage) throws(CRUDError) -> Bool {
        defer { storage.releaseSnapshot() }
        return try matches.find(with: storage.reader(), isAbandoned: { [self] in isAbandoned })
    }

    /// Removes what has been found. One that cannot be removed does not keep the others.
    ///
    /// - Returns: false if some of it has changed since, so that it has to be found again.
    private func remove(_ matches: any MatchExecutor, _ storage: OpenStorage) throws(CRUDError) -> Bool {
        let outcomes = storage.remove(matches.found, from: collection)
        var changed: Int?
        for (position, outcome) in outcomes.enumerated() {
            switch outcome {
            case .applied: deleted.add(1, ordering: .relaxed)
            case .exists, .notFound: break
            case .mismatch: changed = changed ?? position
            case .failed(let status): firstError = firstError ?? storage.failures.error(status: status)
            case .refused(let error): firstError = firstError ?? error
            }
        }
        // It would keep those that are found later, too.
        if let failure = outcomes.lazy.compactMap(\.commonFailure).first { throw failure }
        guard let changed else { return true }
        matches.rewind(to: changed)
        return false
    }

    /// What has been deleted stays so.
    override func fail(_ error: CRUDError) {
        failure = error
        if count > 0 {
            failure = CRUDError(.outcomeUnknown, "\(count) records were deleted before this: \(error.message)")
        }
        if failure?.code == .outcomeUnknown { failure?.details.deleted = count }
    }

    override func overdueError(_ backend: String) -> CRUDError {
        var error = super.overdueError(backend)
        error.details.deleted = count
        return error
    }
}
