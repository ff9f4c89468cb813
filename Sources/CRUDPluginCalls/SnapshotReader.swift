package import CRUDModel
package import CRUDPluginABI
package import CRUDPluginHost
package import CRUDQuery
import Synchronization

/// Receives the records that a read by ids finds.
package protocol ReadSink: AnyObject {
    /// - Parameters:
    ///   - index: the position of the record's id in the request.
    ///   - record: its bytes are gone when the call returns.
    /// - Returns: whether further records are wanted.
    func receive(index: Int, _ record: FoundRecord) -> Bool
}

/// One thread's way of reading from a plugin, with the snapshot that it holds between reads.
///
/// A held snapshot makes reading twice as fast on SQLite. Two rules bound it: a read that begins after a write was
/// acknowledged sees that write (``CommitClock`` counts commits, and a snapshot that is older than the last one is
/// released first), and no snapshot lives longer than ``maximumSnapshotAge``, since the database cannot reuse its log
/// beneath one.
package final class SnapshotReader {
    /// The longest that a snapshot may be held.
    package static let maximumSnapshotAge = Duration.milliseconds(100)

    private let table: UnsafePointer<crudd_plugin>
    private let reader: OpaquePointer
    private let clock: CommitClock
    /// Makes the error that a client sees of a call that has failed, and logs the cause.
    private let report: (PluginFailure, String) -> CRUDError
    private let failure = FailureReport()
    private let context = CallContext()

    /// Made once; each read sets what differs. In memory of its own, for the plugin calls back while it is in use.
    private let request = UnsafeMutablePointer<crudd_read>.allocate(capacity: 1)

    /// What every read touches. Not checked for exclusive access at run time, which a profile of reads shows: one
    /// thread uses it, and nothing that is called during an access comes back to it.
    private struct State {
        /// Where the records of the read in progress go: one of the two.
        var sink: (any ReadSink)?
        var visitor: (any RecordVisitor)?
        /// The commits at the time of the snapshot; nil while none is held.
        var snapshotCommits: UInt64?
    }

    @exclusivity(unchecked) private var state = State()

    /// - Parameters:
    ///   - reader: the plugin's reader, used by this object alone.
    ///   - report: makes the error that a client sees of a failed call, whose name it is given.
    package init(
        _ reader: PluginHandle, of table: UnsafePointer<crudd_plugin>, clock: CommitClock,
        report: @escaping (PluginFailure, String) -> CRUDError
    ) {
        self.table = table
        self.reader = reader.pointer
        self.clock = clock
        self.report = report
        request.initialize(to: .sized())
        request.pointee.context = Unmanaged.passUnretained(self).toOpaque()
        request.pointee.emit = { context, index, record in
            guard let context, let record else { return 1 }
            let found = FoundRecord(crudd_record.read(record))
            // `context` is the reader that is making the call.
            let reader = Unmanaged<SnapshotReader>.fromOpaque(context).takeUnretainedValue()
            if let visitor = reader.state.visitor { return visitor.visit(found) ? 0 : 1 }
            return reader.state.sink?.receive(index: index, found) == true ? 0 : 1
        }
    }

    deinit { request.deallocate() }

    // MARK: The snapshot

    package var holdsSnapshot: Bool { state.snapshotCommits != nil }

    /// Whether the snapshot that is held lacks a commit.
    package var isStale: Bool { state.snapshotCommits.map { $0 != clock.now } ?? false }

    /// Releases the snapshot, if one is held.
    package func releaseSnapshot() {
        guard state.snapshotCommits != nil else { return }
        state.snapshotCommits = nil
        table.pointee.end_snapshot?(reader)
    }

    /// Prepares a call that reads: releases a snapshot that lacks a commit.
    private func renew() {
        let commits = clock.now
        if let held = state.snapshotCommits, held != commits || clock.isCommitting(commits) { releaseSnapshot() }
        state.snapshotCommits = commits
    }

    /// Prepares a call that reads, which the caller makes.
    ///
    /// - Returns: the plugin's reader, for that one call.
    package func beginRead() -> OpaquePointer {
        renew()
        return reader
    }

    /// A number that differs from the last one if somebody beside this backend has written since; 0: that cannot be
    /// told.
    package func dataVersion() -> UInt64 { table.pointee.data_version?(reader) ?? 0 }

    // MARK: Reading by id

    /// Reads records by id; each that exists goes to the sink.
    ///
    /// - Parameters:
    ///   - ids: of the records.
    ///   - collection: where they are.
    ///   - withItems: whether the items are wanted, too.
    ///   - toWrite: whether the next write of the backend stores them, on condition that they are still what is read,
    ///     which has failed before.
    ///   - sink: gets them.
    /// - Throws: `unavailable`, `corrupt`, `internal_error`.
    package func read(
        _ ids: Span<crudd_bytes>, in collection: any PluginCollection, withItems: Bool = true, toWrite: Bool = false,
        into sink: any ReadSink
    ) throws(CRUDError) {
        guard let handle = collection.handle else { return }
        state.sink = sink
        defer { state.sink = nil }
        try ids.withUnsafeBufferPointer { ids throws(CRUDError) in
            try read(handle, ids.baseAddress, ids.count, withItems: withItems, toWrite: toWrite)
        }
    }

    /// Reads one record by id; if it exists it goes to the visitor.
    ///
    /// - Throws: `unavailable`, `corrupt`, `internal_error`.
    package func read(
        _ id: Span<UInt8>, in collection: any PluginCollection, into visitor: any RecordVisitor
    ) throws(CRUDError) {
        guard let handle = collection.handle else { return }
        state.visitor = visitor
        defer { state.visitor = nil }
        try id.withUnsafeBufferPointer { bytes throws(CRUDError) in
            var id = crudd_bytes(bytes)
            try read(handle, &id, 1, withItems: true)
        }
    }

    private func read(
        _ collection: OpaquePointer, _ ids: UnsafePointer<crudd_bytes>?, _ count: Int, withItems: Bool,
        toWrite: Bool = false
    ) throws(CRUDError) {
        renew()
        request.pointee.flags =
            (withItems ? 0 : UInt32(CRUDD_READ_WITHOUT_ITEMS)) | (toWrite ? UInt32(CRUDD_READ_TO_WRITE) : 0)
        request.pointee.collection = collection
        request.pointee.ids = ids
        request.pointee.count = count
        let status = table.pointee.read(reader, context.begin(), request, failure.pointer)
        if Int(status) != CRUDD_OK { throw fail(status, "read") }
    }

    // MARK: Scanning

    /// Scans records in an order; each goes to the visitor.
    ///
    /// - Parameters:
    ///   - continuesSnapshot: whether the snapshot of the last call is kept, whatever has been committed since.
    ///   - isAbandoned: asked now and then: whether nobody waits for the result any more.
    ///   - onMissingOrder: called, and nothing logged, where the plugin cannot scan in that order yet; it is given the
    ///     plugin's words. nil: that is a failure like any other.
    /// - Throws: `unavailable`, `corrupt`, `internal_error`.
    package func scan(
        _ scan: RecordScan, of collection: any PluginCollection, into visitor: any RecordVisitor,
        continuesSnapshot: Bool = false, isAbandoned: () -> Bool = { false },
        onMissingOrder: ((String) -> Void)? = nil
    ) throws(CRUDError) {
        guard let handle = collection.handle else { return }
        if !continuesSnapshot { renew() }
        state.visitor = visitor
        defer { state.visitor = nil }
        let status = scan.withRange { range in
            var request = crudd_scan.sized()
            request.flags = scan.flags
            request.collection = handle
            request.limit = scan.limit
            request.after_position = scan.afterPosition
            request.context = Unmanaged.passUnretained(self).toOpaque()
            request.emit = self.request.pointee.emit
            return withUnsafePointer(to: range) { range in
                request.range = range
                return scan.withResumption(&request) { request in
                    context.perform(isInterrupted: isAbandoned) {
                        table.pointee.scan(reader, $0, request, failure.pointer)
                    }
                }
            }
        }
        if let onMissingOrder, Int(status) == CRUDD_UNAVAILABLE {
            onMissingOrder(failure.take(status: status).message)
            throw CRUDError(.unavailable, "the storage does not have that order yet")
        }
        if Int(status) != CRUDD_OK { throw fail(status, "scan") }
    }

    /// Counts records.
    ///
    /// - Parameters:
    ///   - limit: counting may stop there; 0: no limit.
    ///   - continuesSnapshot: whether the snapshot of the last call is kept.
    ///   - isAbandoned: asked now and then: whether nobody waits for the result any more.
    /// - Throws: `unavailable`, `corrupt`, `internal_error`.
    package func count(
        _ scan: RecordScan, limit: Int = 0, of collection: any PluginCollection, continuesSnapshot: Bool = false,
        isAbandoned: () -> Bool = { false }
    ) throws(CRUDError) -> Int {
        guard let handle = collection.handle else { return 0 }
        if !continuesSnapshot { renew() }
        var count: UInt64 = 0
        let status = scan.withRange { range in
            withUnsafePointer(to: range) { range in
                var request = crudd_count.sized()
                request.collection = handle
                request.range = range
                request.limit = UInt64(limit)
                return context.perform(isInterrupted: isAbandoned) {
                    table.pointee.count(reader, $0, &request, &count, failure.pointer)
                }
            }
        }
        if Int(status) != CRUDD_OK { throw fail(status, "count") }
        return Int(clamping: count)
    }

    /// Reads what a collection remembers by now, and up to where its changes can be read, of storage that numbers
    /// changes itself. What is read next shows no older state.
    ///
    /// - Parameter isAbandoned: asked now and then: whether the result is of no use any more.
    /// - Returns: nil where the collection is not open.
    /// - Throws: `unsupported`, `unavailable`, `corrupt`, `internal_error`.
    package func readHistory(
        of collection: any PluginCollection, isAbandoned: () -> Bool = { false }
    ) throws(CRUDError) -> crudd_history? {
        guard let handle = collection.handle else { return nil }
        guard let readHistory = table.pointee.read_history else {
            throw CRUDError(.unsupported, "the plugin does not number changes itself")
        }
        // Others have written meanwhile, of which the clock knows nothing.
        releaseSnapshot()
        renew()
        var history = crudd_history.sized()
        let status = context.perform(isInterrupted: isAbandoned) {
            readHistory(reader, $0, handle, &history, failure.pointer)
        }
        if Int(status) != CRUDD_OK { throw fail(status, "read_history") }
        return history
    }

    private func fail(_ status: crudd_status, _ call: String) -> CRUDError {
        if Int(status) == CRUDD_INTERRUPTED {
            _ = failure.take(status: status)
            return CRUDError(.unavailable, "nobody waited for the result any more")
        }
        return report(failure.take(status: status), call)
    }
}

extension FoundRecord {
    package init(_ record: crudd_record) {
        self.init(
            id: record.id.buffer, item: record.item.buffer, revision: record.revision.buffer,
            expiresAt: StoredTime.clamped(record.expires_at), sequence: record.sequence, position: record.position,
            isRemoved: record.flags & UInt32(CRUDD_RECORD_REMOVED) != 0)
    }
}

extension RecordScan {
    fileprivate var flags: UInt32 {
        (withItems ? 0 : UInt32(CRUDD_SCAN_WITHOUT_ITEMS)) | (isReversed ? UInt32(CRUDD_SCAN_REVERSE) : 0)
            | (order == .any && upper.isEmpty && lower.isEmpty ? UInt32(CRUDD_SCAN_ANY_ORDER) : 0)
    }

    /// The range as the plugin sees it, while `body` runs.
    fileprivate func withRange(_ body: (crudd_range) -> crudd_status) -> crudd_status {
        lower.withUnsafeBufferPointer { lower in
            upper.withUnsafeBufferPointer { upper in
                var range = crudd_range.sized()
                switch order {
                case .id, .any: range.order = UInt32(CRUDD_BY_ID)
                case .key(let index):
                    range.order = UInt32(CRUDD_BY_KEY)
                    range.index = UInt32(index)
                case .unkeyed(let index):
                    range.order = UInt32(CRUDD_BY_KEY)
                    range.index = UInt32(index)
                    range.flags = UInt32(CRUDD_RANGE_UNKEYED)
                case .sequence: range.order = UInt32(CRUDD_BY_SEQUENCE)
                case .unsequenced:
                    range.order = UInt32(CRUDD_BY_SEQUENCE)
                    range.flags = UInt32(CRUDD_RANGE_UNSEQUENCED)
                }
                range.lower = crudd_bytes(lower)
                range.upper = crudd_bytes(upper)
                range.lower_sequence = lowerSequence
                range.upper_sequence = upperSequence
                return body(range)
            }
        }
    }

    /// Sets where the scan resumes, while `body` runs.
    fileprivate func withResumption(
        _ request: inout crudd_scan, _ body: (UnsafePointer<crudd_scan>) -> crudd_status
    ) -> crudd_status {
        guard let after else { return body(&request) }
        return after.key.withUnsafeBufferPointer { key in
            after.id.withUnsafeBufferPointer { id in
                request.after_key = crudd_bytes(key)
                request.after_id = crudd_bytes(id)
                return body(&request)
            }
        }
    }
}
