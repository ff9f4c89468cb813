package import CRUDModel
import CRUDPluginHost
import CRUDQuery
import CRUDThreads
import Synchronization

/// Makes the records of a collection in another place the same as those in its own, while that is in use.
///
/// Every record takes one way (``CopyPage``): it is read in the old place by its id, and whatever the new place has
/// under that id is made equal and compared. So it does not matter what was there before, and a copy that has been cut
/// short begins again without remembering how far it got: what is equal already is only compared. Which ids take that
/// way:
///
/// 1. those that a scan of the old place lists,
/// 2. where a copy was cut short, those that only the new place has: they have been deleted since,
/// 3. those that have been written since the scan began, as often as that happens (``ChangeTracker``).
///
/// A copy is worth nothing any more once a storage has been opened again: what it tracks is lost.
package final class CollectionCopy {
    let source: BackendCollection
    let target: BackendCollection
    /// How often the two had been opened when the copy began.
    private var openings: (source: UInt32, target: UInt32) = (0, 0)
    private let sourceBackend: Backend
    private let targetBackend: Backend
    private let tracker: ChangeTracker
    private var pacer = CopyPacer()
    private var stage = Stage.originals
    /// Ids that have been listed and not been copied.
    private var listed: ArraySlice<[UInt8]> = []
    private var lastListed: [UInt8] = []
    private var isListed = false
    private var isResumed = false
    /// How often changes have been copied while the writers could not be slowed any further.
    private var roundsAtLongestPause = 0
    private var timePerRecord = Duration.zero
    /// How many originals have been copied.
    package private(set) var copied = 0
    /// How much the writers are slowed, see ``CommitPause``.
    private var commitPause = CommitPause()

    private enum Stage { case originals, orphans, changes }

    /// How long one step may wait for a backend.
    private static let timeout = Duration.seconds(10)
    /// How many ids are listed at once. A directory is read as a whole for each list.
    private static let listedIDs = 20_000
    /// How many changes may wait before they are copied ahead of everything else.
    private static let maximumChanges = 4096
    /// How long a collection's requests may wait for the last changes. Where slower writers do not help, it grows.
    private static let shortestQuiescence = Duration.milliseconds(10)
    private static let longestQuiescence = Duration.seconds(5)

    package init(
        _ name: [UInt8], from source: (Backend, CollectionPlace), to target: (Backend, CollectionPlace)
    ) {
        self.source = source.0.collection(name, source.1.format)
        self.target = target.0.collection(name, target.1.format)
        sourceBackend = source.0
        targetBackend = target.0
        tracker = ChangeTracker(self.source)
        sourceBackend.environment.trackers.add(tracker)
    }

    deinit { sourceBackend.environment.trackers.remove(tracker) }

    /// Opens both collections; the new one is created.
    ///
    /// - Returns: how many records there are.
    package func begin() throws(CRUDError) -> Int {
        try open(source, in: sourceBackend)
        try open(target, in: targetBackend)
        openings = (source.openings, target.openings)
        guard let total = sourceBackend.count(source, within: Self.timeout) else {
            throw sourceBackend.failures.unavailable
        }
        guard let copies = targetBackend.count(target, within: Self.timeout) else {
            throw targetBackend.failures.unavailable
        }
        isResumed = copies > 0
        return total
    }

    private func open(_ collection: BackendCollection, in backend: Backend) throws(CRUDError) {
        try backend.perform(within: Self.timeout) { (storage) throws(CRUDError) in
            if !collection.isCurrent { try storage.open(collection) }
            if !collection.isOpen { try storage.open(collection, flags: OpenStorage.creates) }
        }
    }

    /// Whether it can continue: neither has been closed since it began, however soon it was opened again.
    package var isValid: Bool { isSourceValid && isTargetValid }

    private var isSourceValid: Bool { source.isOpen && source.openings == openings.source }
    private var isTargetValid: Bool { target.isOpen && target.openings == openings.target }

    // MARK: Steps

    /// What comes after a step.
    package enum Next {
        case step(after: Duration)
        /// Few enough changes are left for the collection's requests to wait until they are copied.
        case quiesce
    }

    /// Copies some records.
    ///
    /// - Throws: why that is not possible. What was to be copied will be, as long as ``isValid``.
    package func advance() throws(CRUDError) -> Next {
        if tracker.count >= Self.maximumChanges { return .step(after: try copyRound()) }
        switch stage {
        case .originals:
            if listed.isEmpty, try !list(source, of: sourceBackend) {
                stage = isResumed ? .orphans : .changes
                (lastListed, isListed) = ([], false)
                return .step(after: .zero)
            }
            let ids = listed.prefix(pacer.pageRecords)
            let pause = try copy(Array(ids))
            listed = listed.dropFirst(ids.count)
            copied += ids.count
            return .step(after: pause)
        case .orphans:
            if listed.isEmpty, try !list(target, of: targetBackend) {
                stage = .changes
                return .step(after: .zero)
            }
            let ids = listed.prefix(pacer.pageRecords)
            let pause = try copy(try orphans(among: Array(ids)))
            listed = listed.dropFirst(ids.count)
            return .step(after: pause)
        case .changes:
            let pause = try copyRound()
            if commitPause.isLongest { roundsAtLongestPause += 1 }
            let doublings = min(roundsAtLongestPause / 32, 10)
            let quiescence = min(Self.longestQuiescence, Self.shortestQuiescence * (1 << doublings))
            return timePerRecord * tracker.count <= quiescence ? .quiesce : .step(after: pause)
        }
    }

    /// Copies what has changed, to the end. The collection must not be written meanwhile.
    ///
    /// - Returns: false where a bulk delete or a long write is still in progress.
    package func finish(within timeout: Duration) throws(CRUDError) -> Bool {
        // Requests wait by now: the writes in flight are the last, and need not be slowed.
        tracker.commitPause = .zero
        guard sourceBackend.drain(within: timeout) else { throw sourceBackend.failures.unavailable }
        let isWriting = Mutex(false)
        try sourceBackend.perform(within: timeout) { [source] storage in
            isWriting.withLock { $0 = storage.isWriting(source) }
        }
        if isWriting.withLock({ $0 }) { return false }
        while tracker.count > 0 { _ = try copyChanges() }
        guard isValid else { throw CRUDError(.unavailable, "a storage has been opened again meanwhile") }
        return true
    }

    // MARK: Listing

    /// Lists further ids; false where there are none.
    private func list(_ collection: BackendCollection, of backend: Backend) throws(CRUDError) -> Bool {
        if isListed { return false }
        let list = try backend.ids(of: collection, after: lastListed, atMost: Self.listedIDs, within: Self.timeout)
        guard isValid else { throw backend.failures.unavailable }
        isListed = list.count < Self.listedIDs
        lastListed = list.last ?? []
        listed = list[...]
        return !list.isEmpty
    }

    /// Those of the ids that the old place does not have.
    private func orphans(among ids: [[UInt8]]) throws(CRUDError) -> [[UInt8]] {
        let page = CopyPage(ids)
        try sourceBackend.read(within: Self.timeout) { [source] reader throws(CRUDError) in
            try page.read(from: source, with: reader)
        }
        guard isSourceValid else { throw sourceBackend.failures.unavailable }
        return page.missing
    }

    // MARK: Copying

    /// Copies some changes, and slows the writers if more came meanwhile.
    private func copyRound() throws(CRUDError) -> Duration {
        let before = tracker.count
        let pause = try copyChanges()
        commitPause.note(before: before, after: tracker.count)
        tracker.commitPause = commitPause.duration
        return commitPause.duration == .zero ? pause : .zero
    }

    private func copyChanges() throws(CRUDError) -> Duration {
        let ids = tracker.take(atMost: pacer.pageRecords)
        do throws(CRUDError) {
            return try copy(ids)
        } catch {
            tracker.note(ids)
            throw error
        }
    }

    /// Makes the new place agree with the old one in these records.
    ///
    /// - Returns: how long to leave the backends to their clients.
    private func copy(_ ids: [[UInt8]]) throws(CRUDError) -> Duration {
        guard !ids.isEmpty else { return .zero }
        let page = CopyPage(ids)
        let begin = MonotonicTime.now
        let waits = Mutex(Duration.zero)
        try sourceBackend.read(within: Self.timeout) { [source] reader throws(CRUDError) in
            waits.withLock { $0 += MonotonicTime.now - begin }
            try page.read(from: source, with: reader)
        }
        // What a storage that has just been lost does not show may be there.
        guard isSourceValid else { throw sourceBackend.failures.unavailable }
        if page.isTooLarge {
            pacer.halve()
            return try copy(Array(ids.prefix(ids.count / 2))) + copy(Array(ids.dropFirst(ids.count / 2)))
        }
        try page.encode(from: source, for: target)
        let submitted = MonotonicTime.now
        try targetBackend.perform(within: Self.timeout) { [target, openings] storage throws(CRUDError) in
            waits.withLock { $0 += MonotonicTime.now - submitted }
            guard target.isOpen, target.openings == openings.target else { throw storage.failures.unavailable }
            try page.store(in: target, with: storage)
        }
        let duration = MonotonicTime.now - begin
        timePerRecord = duration / ids.count
        return pacer.copied(in: duration, waiting: waits.withLock { $0 })
    }
}
