import CRUDJSON
package import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
package import CRUDQuery

/// The page of a `collection.changes`, on a thread that reads.
package final class ChangesTask: ReadTask, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    /// What is asked for.
    package struct Request: Sendable {
        package var query: ChangesQuery
        package var start: ChangesCursor.Start
        /// How long the changes of a page may be.
        package var maximumBytes: Int
        /// How long the text of one item may be.
        package var maximumItemBytes: Int
        /// A page ends early after this.
        package var timeout: Duration

        package init(
            _ query: ChangesQuery, from start: ChangesCursor.Start, maximumBytes: Int, maximumItemBytes: Int,
            timeout: Duration
        ) {
            self.query = query
            self.start = start
            self.maximumBytes = maximumBytes
            self.maximumItemBytes = maximumItemBytes
            self.timeout = timeout
        }
    }

    private let request: Request
    private let feeds: ChangeFeeds
    /// How many feeds had been opened when it was made.
    package let openings: UInt64
    private var execution: ChangesExecution?
    private var place = ChangesCursor()
    private var isFound = false

    // MARK: The page

    /// The changes, as JSON text with commas between.
    package private(set) var changes: [UInt8] = []
    /// The ids of records that cannot be decoded and were left out.
    package private(set) var corrupt: [[UInt8]] = []
    /// The feed that it is a page of; nil: the collection is not there.
    package private(set) var feed: ChangeFeed?
    /// How many changes that feed had had before it was read.
    package private(set) var changesBefore: UInt64 = 0
    /// Where the next page begins.
    package private(set) var cursor = ChangesCursor()
    /// Whether there is more at once.
    package private(set) var hasMore = false
    /// Whether records that were there before the feed are still to come.
    package private(set) var isComplete = true

    package init(
        _ request: Request, in collection: BackendCollection, _ feeds: ChangeFeeds,
        deliver: @escaping @Sendable (WorkItem) -> Void
    ) {
        self.request = request
        self.feeds = feeds
        openings = feeds.openings
        super.init(on: collection, deliver: deliver)
    }

    override func advance(with reader: SnapshotReader, child: Child?, _ failures: FailureReporter) -> Bool {
        defer { reader.releaseSnapshot() }
        do throws(CRUDError) {
            return try advance(reader, failures)
        } catch {
            failure = error
            return true
        }
    }

    private func advance(_ reader: SnapshotReader, _ failures: FailureReporter) throws(CRUDError) -> Bool {
        if isAbandoned { throw CRUDError(.unavailable, "nobody waited for the changes any more") }
        guard let feed = collection.feed else {
            guard !collection.isOpen else { throw .changesAreOff }
            guard isAbsent else { throw CRUDError(.unavailable, "the collection has been closed meanwhile") }
            // Nothing has ever been written.
            switch request.start {
            case .cursor(let cursor) where cursor.identity != 0: throw .cursorExpired
            case .sealed(let cursor) where cursor.opened(identity: 0) == nil: throw .cursorExpired
            default: return true
            }
        }
        self.feed = feed
        if execution == nil {
            changesBefore = feed.changes
            guard let extent = try extent(of: feed, reader, failures) else { return false }
            execution = try begin(extent)
        }
        guard let execution else { return false }
        if !isFound {
            isFound = try execution.advance(
                PluginRecordSource(reader, collection, isAbandoned: { [self] in isAbandoned }),
                isAbandoned: { [self] in isAbandoned })
        }
        // What was forgotten meanwhile may have been missing.
        guard isFound, let extent = try extent(of: feed, reader, failures) else { return false }
        guard feed.isOpen, place.isValid(in: extent.history) else { throw .cursorExpired }
        cursor = place.moved(to: max(execution.lastChange, min(execution.end, extent.confirmed)))
        changes = execution.changes
        corrupt = execution.corrupt
        isComplete = feed.isComplete
        hasMore = !execution.reachesBound
        failures.note(corrupt: corrupt, in: collection)
        return true
    }

    /// What can be asked for when a page begins.
    private struct Extent {
        var history: ChangeFeed.History
        /// The page ends at this number.
        var end: UInt64
        /// The storage gives no number up to this one again.
        var confirmed: UInt64
        /// No place is above this one.
        var last: UInt64
    }

    /// - Returns: nil while it is about to change.
    private func extent(
        of feed: ChangeFeed, _ reader: SnapshotReader, _ failures: FailureReporter
    ) throws(CRUDError) -> Extent? {
        if feeds.areShared {
            guard let read = try reader.readHistory(of: collection, isAbandoned: { isAbandoned }) else { return nil }
            return Extent(
                history: ChangeFeed.History(identity: read.identity, forgotten: read.forgotten), end: read.end,
                confirmed: read.end, last: max(read.next, 1) - 1)
        }
        if feed.isUnknown { throw failures.unavailable }
        // While removals are being forgotten it is not known which; that takes a moment.
        guard let history = feed.history else { return nil }
        // Before the snapshot is taken, and in this order.
        let confirmed = max(feeds.confirmedMark, history.forgotten)
        let end = min(feeds.highWaterMark, feed.end)
        return Extent(history: history, end: end, confirmed: min(confirmed, end), last: end)
    }

    private func begin(_ extent: Extent) throws(CRUDError) -> ChangesExecution {
        let history = extent.history
        var end = extent.end
        place =
            switch request.start {
            case .beginning: ChangesCursor(identity: history.identity, sequence: 0, base: extent.confirmed)
            case .now: ChangesCursor(identity: history.identity, sequence: extent.confirmed)
            case .cursor(let cursor): cursor
            case .sealed(let sealed):
                if let cursor = sealed.opened(identity: history.identity) ?? sealed.opened(identity: 0) {
                    cursor
                } else {
                    throw .cursorExpired
                }
            }
        // The collection was not there.
        if place.identity == 0 { place = ChangesCursor(identity: history.identity) }
        guard place.isValid(in: history), place.sequence <= extent.last else { throw .cursorExpired }
        // What had that number may have been changed again; and "now" is an empty page.
        if case .now = request.start { end = 0 }
        end = max(end, place.sequence)
        return try ChangesExecution(
            request.query, in: QueryTarget(collection, maximumItemBytes: request.maximumItemBytes),
            after: place.sequence, through: end, removalsAfter: place.base, maximumBytes: request.maximumBytes,
            timeout: request.timeout, limits: .onThread)
    }

    override var isWaiting: Bool { !isAbandoned && (execution?.isWaiting == true || isAwaitingTrim) }

    /// Whether it can be neither begun nor ended, as removals are being forgotten.
    private var isAwaitingTrim: Bool {
        !feeds.areShared && (execution == nil || isFound) && feed?.isTrimming == true
    }

    override func end() { execution = nil }
}

extension CRUDError {
    package static let changesAreOff = CRUDError(
        .unsupported,
        "the collection's changes are not remembered; its key `changes` in the configuration turns that on")
    package static let cursorExpired = CRUDError(
        .cursorExpired, #"what has changed since that cursor is not remembered; begin again at "start""#)
}
