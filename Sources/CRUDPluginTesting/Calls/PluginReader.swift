import CRUDPluginABI

/// A reader of a backend; it is closed when nobody refers to it any more.
package final class PluginReader {
    private let backend: PluginBackend
    private let handle: OpaquePointer
    private var table: UnsafePointer<crudd_plugin> { backend.plugin.table }

    init(backend: PluginBackend, handle: OpaquePointer) {
        self.backend = backend
        self.handle = handle
    }

    deinit { table.pointee.close_reader(handle) }

    /// Releases the reader's snapshot.
    package func endSnapshot() { table.pointee.end_snapshot?(handle) }

    /// A number that changes when somebody beside the backend writes; 0: unknown; nil: the plugin has no such function.
    package func dataVersion() -> UInt64? { table.pointee.data_version.map { $0(handle) } }

    /// Returns a record or nil for each id.
    ///
    /// - Parameters:
    ///   - ids: of the records.
    ///   - collection: where they are.
    ///   - withItems: whether the items are wanted.
    ///   - toWrite: whether the plugin is told that they are about to be written.
    ///   - stopAfter: how many to take before the plugin is told to stop.
    package func read(
        _ ids: [String], in collection: PluginCollection, withItems: Bool = true, toWrite: Bool = false,
        stopAfter: Int = .max
    ) throws(CallError) -> [PluginRecord?] {
        let sink = RecordSink(positions: ids.count, maximum: stopAfter)
        try backend.call { memory, call, failure in
            var request = crudd_read()
            request.flags =
                (withItems ? 0 : UInt32(CRUDD_READ_WITHOUT_ITEMS)) | (toWrite ? UInt32(CRUDD_READ_TO_WRITE) : 0)
            request.collection = collection.handle
            request.ids = memory.array(ids.map { Array($0.utf8) })
            request.count = ids.count
            request.emit = RecordSink.emit
            request.context = sink.context
            return table.pointee.read(handle, call, memory.copy(request), failure)
        }
        if let violation = sink.violation { throw .violation("read \(violation)") }
        return ids.indices.map { sink.records[$0] }
    }

    package func read(_ id: String, in collection: PluginCollection) throws(CallError) -> PluginRecord? {
        try read([id], in: collection)[0]
    }

    /// Returns records in the order in which they came.
    ///
    /// - Parameters:
    ///   - afterKey: with `after`, where to resume a scan by key.
    ///   - after: the id behind which to resume; empty: from the start.
    ///   - limit: 0: none.
    ///   - stopAfter: how many to take before the plugin is told to stop.
    ///   - meanwhile: called with each record, while the plugin's call is in progress.
    package func scan(
        _ collection: PluginCollection, _ range: PluginRange = PluginRange(), isReversed: Bool = false,
        afterKey: [UInt8] = [], after: String = "", limit: Int = 0, withItems: Bool = true, stopAfter: Int = .max,
        meanwhile: (() -> Void)? = nil
    ) throws(CallError) -> [PluginRecord] {
        let sink = RecordSink(
            of: range.order == .sequence ? .changes : .records, maximum: stopAfter, meanwhile: meanwhile)
        try scan(collection, range, into: sink) { memory, request in
            request.flags =
                (withItems ? 0 : UInt32(CRUDD_SCAN_WITHOUT_ITEMS)) | (isReversed ? UInt32(CRUDD_SCAN_REVERSE) : 0)
            request.after_key = memory.copy(afterKey)
            request.after_id = memory.copy(after)
            request.limit = limit
        }
        return (0..<sink.records.count).compactMap { sink.records[$0] }
    }

    /// Scans in any order.
    ///
    /// - Parameter last: the id and the position of the record behind which to resume; nil: from the start.
    /// - Returns: records in the order in which they came, and the position of the last one.
    package func scanInAnyOrder(
        _ collection: PluginCollection, after last: (id: String, position: UInt64)?, limit: Int
    ) throws(CallError) -> (records: [PluginRecord], position: UInt64) {
        let sink = RecordSink()
        try scan(collection, PluginRange(), into: sink) { memory, request in
            request.flags = UInt32(CRUDD_SCAN_ANY_ORDER)
            request.after_id = memory.copy(last?.id ?? "")
            request.after_position = last?.position ?? 0
            request.limit = limit
        }
        return ((0..<sink.records.count).compactMap { sink.records[$0] }, sink.position)
    }

    /// Scans by id and returns how many records came; also those of a scan that was interrupted.
    package func scanCounting(_ collection: PluginCollection) throws(CallError) -> (count: Int, isInterrupted: Bool) {
        let sink = RecordSink(keepsRecords: false)
        do {
            try scan(collection, PluginRange(), into: sink) { _, _ in }
        } catch {
            guard error.status == CRUDD_INTERRUPTED else { throw error }
            return (sink.count, true)
        }
        return (sink.count, false)
    }

    private func scan(
        _ collection: PluginCollection, _ range: PluginRange, into sink: RecordSink,
        _ fill: (CallMemory, inout crudd_scan) -> Void
    ) throws(CallError) {
        try backend.call { memory, call, failure in
            var request = crudd_scan()
            fill(memory, &request)
            request.collection = collection.handle
            request.range = range.raw(memory)
            request.emit = RecordSink.emit
            request.context = sink.context
            return table.pointee.scan(handle, call, memory.copy(request), failure)
        }
        if let violation = sink.violation { throw .violation("scan \(violation)") }
    }

    /// - Parameter limit: where counting may stop; 0: none.
    package func count(
        _ collection: PluginCollection, _ range: PluginRange = PluginRange(), limit: Int = 0
    ) throws(CallError) -> Int {
        var count: UInt64 = 0
        try backend.call { memory, call, failure in
            var request = crudd_count()
            request.collection = collection.handle
            request.range = range.raw(memory)
            request.limit = UInt64(limit)
            return table.pointee.count(handle, call, memory.copy(request), &count, failure)
        }
        return Int(clamping: count)
    }

    /// Returns what a collection remembers by now, and up to where its changes can be read.
    package func readHistory(of collection: PluginCollection) throws(CallError) -> PluginHistory {
        guard let readHistory = table.pointee.read_history else {
            throw .violation("the table has no function read_history")
        }
        var history = crudd_history()
        try backend.call { memory, call, failure in
            let result = memory.copy(crudd_history())
            let status = readHistory(handle, call, collection.handle, result, failure)
            history = result.pointee
            return status
        }
        return PluginHistory(history)
    }
}
