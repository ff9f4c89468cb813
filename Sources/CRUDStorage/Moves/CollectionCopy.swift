package import CRUDModel
import CRUDPluginCalls
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
/// Where both places keep a feed the new one continues that of the old one, so that cursors stay valid: copies have the
/// sequence numbers of their originals, and the removals that the old place remembers are taken over in their order.
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
    /// Whether the new place continues the feed of the old one.
    private var takesHistory = false
    /// Whether it would have, had it been able to.
    private var hasWantedHistory = false
    /// The sequence number up to which removals have been taken over.
    private var removalsTaken: UInt64 = 0
    /// Records that have not been copied because they have no number yet.
    private var unnumbered: Set<[UInt8]> = []
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
    /// How long it waits for records to get numbers.
    private static let numberingPause = Duration.milliseconds(50)
    /// How many records that have expired are removed at once.
    private static let expiredAtOnce = 500
    /// How many sequence numbers are looked through for removals at once.
    private static let numbersAtOnce = 2000
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
        self.target.beginCopying()
    }

    deinit {
        source.feed?.end = .max
        target.endCopying()
        sourceBackend.environment.trackers.remove(tracker)
    }

    /// Opens both collections; the new one is created.
    ///
    /// - Returns: how many records there are.
    package func begin() throws(CRUDError) -> Int {
        try open(source, in: sourceBackend)
        try open(target, in: targetBackend)
        if target.feed != nil {
            // What it remembers of a copy that was cut short has no meaning any more.
            try targetBackend.perform(within: Self.timeout) { [target] (storage) throws(CRUDError) in
                try storage.beginAnew(target)
                try storage.open(target, flags: OpenStorage.creates)
            }
        }
        hasWantedHistory = wantsHistory
        takesHistory = try takeHistory()
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
    package var isValid: Bool { isSourceValid && isTargetValid && (hasWantedHistory || !wantsHistory) }

    /// Whether both places are to keep a feed, and the new one can continue another. A copy that began before changes
    /// were turned on does not have them.
    private var wantsHistory: Bool {
        source.layout.retention != nil && target.layout.retention != nil
            && targetBackend.capabilities.contains(.takesHistory)
    }

    private var isSourceValid: Bool {
        source.isOpen && source.openings == openings.source && (!takesHistory || source.feed != nil)
    }

    private var isTargetValid: Bool {
        target.isOpen && target.openings == openings.target && (!takesHistory || target.feed != nil)
    }

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
        source.feed?.end = .max
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
            let begin = MonotonicTime.now
            if takesHistory, try takeRemovals() { return .step(after: MonotonicTime.now - begin) }
            if takesHistory, try removeExpired() == Self.expiredAtOnce {
                return .step(after: MonotonicTime.now - begin)
            }
            // They have their numbers by now.
            if source.feed?.isComplete == true { tracker.note(unnumbered) }
            let pause = try copyRound()
            if !isNumbered { return .step(after: max(pause, Self.numberingPause)) }
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
        if try sourceBackend.isWriting(source.key, within: timeout) { return false }
        while tracker.count > 0 { _ = try copyChanges() }
        if takesHistory, try !finishHistory(until: MonotonicTime.now + timeout) { return false }
        guard isValid else { throw CRUDError(.unavailable, "a storage has been opened again meanwhile") }
        return true
    }

    // MARK: The feed

    /// What it waits for; nil: nothing.
    package var obstacle: String? {
        guard stage == .changes, !isNumbered else { return nil }
        return "the feed of changes in the old place does not have all records yet"
    }

    /// Whether all originals have a number, as far as that matters.
    private var isNumbered: Bool { !takesHistory || unnumbered.isEmpty && source.feed?.isComplete == true }

    /// Takes over what is left of the old place's history.
    ///
    /// - Returns: false where that takes too long, records have no number yet, or it is not known whether the old place
    ///   has removed something.
    private func finishHistory(until deadline: Duration) throws(CRUDError) -> Bool {
        guard sourceBackend.feeds.unknownOutcomes == 0 else { return false }
        // No page that is being made ends higher, whatever is written to other collections of the old backend.
        source.feed?.end = sourceBackend.feeds.highWaterMark
        // What has expired and was not copied is only remembered once it is removed.
        while try removeExpired() > 0 {
            while tracker.count > 0 { _ = try copyChanges() }
            if deadline < MonotonicTime.now { return false }
        }
        while try takeRemovals() { if deadline < MonotonicTime.now { return false } }
        guard try takeHistory() else { throw CRUDError(.unavailable, "the feed of changes has ended meanwhile") }
        return isNumbered
    }

    /// Has the new place continue the history of the old one.
    ///
    /// - Returns: false where one of the two has none, or the new one cannot do that.
    private func takeHistory(_ removals: OpenStorage.NumberedRemovals = []) throws(CRUDError) -> Bool {
        // No cursor has a higher number.
        let lastSequence = sourceBackend.feeds.highWaterMark
        let found = Mutex<ChangeFeed.History?>(nil)
        try sourceBackend.perform(within: Self.timeout) { [source] (storage) throws(CRUDError) in
            guard source.feed != nil, let handle = source.handle else { return }
            let history = try storage.readHistory(of: handle)
            found.withLock { $0 = history }
        }
        guard let history = found.withLock({ $0 }) else { return false }
        let isTaken = Mutex(false)
        try targetBackend.perform(within: Self.timeout) { [target] (storage) throws(CRUDError) in
            let taken = try storage.take(history, through: lastSequence, removals, for: target)
            isTaken.withLock { $0 = taken }
        }
        return isTaken.withLock { $0 }
    }

    /// Takes over some of the removals that the old place remembers.
    ///
    /// - Returns: whether there may be more.
    private func takeRemovals() throws(CRUDError) -> Bool {
        let list = RemovalList()
        let first = removalsTaken + 1
        let end = Mutex<UInt64>(0)
        try sourceBackend.read(within: Self.timeout) { [source, sourceBackend] reader throws(CRUDError) in
            // Before the snapshot is taken.
            let last = sourceBackend.feeds.highWaterMark
            end.withLock { $0 = last }
            if last < first { return }
            var scan = RecordScan(.sequence)
            scan.lowerSequence = first
            scan.upperSequence = last + 1
            scan.limit = Self.numbersAtOnce
            scan.withItems = false
            try reader.scan(scan, of: source, into: list)
        }
        guard isSourceValid else { throw sourceBackend.failures.unavailable }
        if !list.removals.isEmpty {
            guard try takeHistory(list.removals), isTargetValid else { throw targetBackend.failures.unavailable }
        }
        let hasMore = list.count == Self.numbersAtOnce
        removalsTaken = hasMore ? list.last : max(removalsTaken, end.withLock { $0 })
        return hasMore
    }

    /// Has the old place remove records that have expired.
    ///
    /// - Returns: how many.
    private func removeExpired() throws(CRUDError) -> Int {
        let count = Mutex(0)
        try sourceBackend.perform(within: Self.timeout) { [source] (storage) throws(CRUDError) in
            guard storage.opened.capabilities.contains(.expiry), let handle = source.handle else { return }
            let removed = try storage.removeExpired(from: handle, atMost: Self.expiredAtOnce).count
            count.withLock { $0 = removed }
        }
        return count.withLock { $0 }
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
        let page = CopyPage(ids, keepsSequences: takesHistory)
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
        unnumbered.subtract(ids)
        if takesHistory {
            // Once they are numbered they are changes, as one is whose number has just been given.
            unnumbered.formUnion(page.leaveOutUnnumbered(through: sourceBackend.feeds.highWaterMark))
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

/// Gathers the removals that a scan by sequence number finds.
private final class RemovalList: RecordVisitor, @unchecked Sendable {
    // @unchecked: it belongs to the thread that scans until the scan is done.
    private(set) var removals: OpenStorage.NumberedRemovals = []
    /// How many records and removals there were.
    private(set) var count = 0
    /// The number of the last one.
    private(set) var last: UInt64 = 0

    func visit(_ record: FoundRecord) -> Bool {
        count += 1
        last = record.sequence
        if record.isRemoved { removals.append((Array(record.id), record.sequence)) }
        return true
    }
}
