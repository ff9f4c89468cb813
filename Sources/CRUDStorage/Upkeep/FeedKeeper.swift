import CRUDModel
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery
import CRUDThreads

/// Keeps the feeds of open collections in order, on the writer's thread, in steps of a few milliseconds: gives records
/// that have no sequence number one, and forgets removals when their time is over.
///
/// Records without a number are those that were there before the feed was turned on, and those that somebody else has
/// written. As with indexes, the to-do list is the storage itself: a step scans some of these records and stores them
/// again as they are, on condition that they are unchanged. Whatever a kill has left undone is still unnumbered.
final class FeedKeeper: BackgroundWork {
    private let storage: OpenStorage
    private var entries: [Entry] = []
    private var pacer = StepPacer(stepDuration: .milliseconds(2), records: 32, within: 32...1024)
    private var nextLook = MonotonicTime.now + lookPause
    /// Whether the last step forgot removals.
    private var trims = false

    private final class Entry {
        var collection: BackendCollection
        let handle: OpaquePointer
        let feed: ChangeFeed
        /// Whether records may have no sequence number.
        var isFilling = true
        /// The last record that has been looked at.
        var position: [UInt8] = []
        var nextTrim = MonotonicTime.now

        init(_ collection: BackendCollection, _ handle: OpaquePointer, _ feed: ChangeFeed) {
            self.collection = collection
            self.handle = handle
            self.feed = feed
        }

        var isOpen: Bool { feed.isOpen && collection.handle == handle }
    }

    /// The most bytes of items that a step stores.
    private static let maximumStepBytes = 1 << 20
    private static let maximumTrimmed = 1000
    /// How often is looked for what somebody else has written, and for what is to be forgotten.
    private static let lookPause = Duration.seconds(60)
    private static let shortestTrimPause = Duration.milliseconds(100)
    /// When a trim is tried again that has failed.
    private static let retryPause = Duration.seconds(1)

    init(_ storage: OpenStorage) {
        self.storage = storage
    }

    /// Adds a collection that has been opened, if it has a feed.
    func add(_ collection: BackendCollection) {
        guard let feed = collection.feed, let handle = collection.handle else { return }
        if let entry = entries.first(where: { $0.feed === feed }) {
            entry.collection = collection
        } else {
            entries.append(Entry(collection, handle, feed))
        }
    }

    var timeUntilDue: Duration? {
        guard !entries.isEmpty else { return nil }
        let due = entries.contains(where: \.isFilling) ? .zero : entries.map(\.nextTrim).min() ?? nextLook
        return max(.zero, max(pacer.nextStep, min(due, nextLook)) - MonotonicTime.now)
    }

    func advanceIfDue() {
        guard timeUntilDue == .zero else { return }
        let begin = MonotonicTime.now
        entries.removeAll { !$0.isOpen }
        if begin >= nextLook {
            nextLook = begin + Self.lookPause
            for entry in entries { entry.isFilling = true }
        }
        let filling = entries.firstIndex(where: \.isFilling)
        let trimming = entries.firstIndex { $0.nextTrim <= begin }
        // In turn: a feed cannot be followed while a failure to trim it is unresolved.
        trims = trimming != nil && (filling == nil || !trims)
        guard let due = trims ? trimming : filling else { return }
        let entry = entries[due]
        do throws(CRUDError) {
            if trims {
                // Other collections come first next time.
                entries.append(entries.remove(at: due))
                try trim(entry)
                pacer.ended(begun: begin)
            } else {
                try fill(entry)
            }
        } catch {
            // It has been logged, if it is a failure. Other collections come first now.
            if trims {
                entry.nextTrim = MonotonicTime.now + Self.retryPause
            } else {
                entries.append(entries.remove(at: due))
                pacer.failed()
            }
        }
    }

    // MARK: Sequence numbers

    private func fill(_ entry: Entry) throws(CRUDError) {
        let begin = MonotonicTime.now
        let step = RecordStep(.put, in: entry.collection, maximumBytes: Self.maximumStepBytes)
        defer { storage.releaseSnapshot() }
        var scan = RecordScan(.unsequenced)
        scan.after = entry.position.isEmpty ? nil : (key: [], id: entry.position)
        scan.limit = pacer.records
        try storage.reader().scan(scan, of: entry.collection, into: step, onMissingOrder: { _ in })
        // A record that has been changed meanwhile got its number with the change.
        try storage.execute(step)
        entry.position = step.lastID
        if step.count < pacer.records, !step.isFull {
            entry.isFilling = false
            entry.position = []
            if !entry.feed.isComplete {
                entry.feed.isComplete = true
                storage.environment.feeds.wakeAll()
            }
        }
        pacer.ended(begun: begin, records: step.count)
    }

    // MARK: Retention

    private func trim(_ entry: Entry) throws(CRUDError) {
        let retention = entry.collection.layout.retention ?? CollectionRule.Changes.defaultRetention
        entry.nextTrim = MonotonicTime.now + max(Self.shortestTrimPause, min(Self.lookPause, retention / 10))
        let moment = CallContext.now - retention.milliseconds
        let trimmed = try storage.trim(entry.feed, of: entry.handle, before: moment, atMost: Self.maximumTrimmed)
        if trimmed == Self.maximumTrimmed { entry.nextTrim = MonotonicTime.now }
    }
}
