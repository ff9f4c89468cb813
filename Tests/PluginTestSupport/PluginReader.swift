import CRUDPluginABI

/// A reader of a backend; it is closed when nobody refers to it any more.
package final class PluginReader {
    private let backend: PluginBackend
    private let handle: OpaquePointer

    init(backend: PluginBackend, handle: OpaquePointer) {
        self.backend = backend
        self.handle = handle
    }

    deinit {
        backend.plugin.table.pointee.close_reader(handle)
    }

    /// Answers a record or nil for each id.
    package func read(
        _ ids: [String], in collection: PluginCollection, withItems: Bool = true
    ) throws(PluginFault) -> [PluginRecord?] {
        var sink = Sink()
        let fields = PluginMutation.Fields(ids)
        defer { withExtendedLifetime(fields) {} }
        try PluginFault.throwing { failure in
            withUnsafeMutablePointer(to: &sink) { sink in
                fields.bytes.withUnsafeBufferPointer { ids in
                    var request = crudd_read()
                    request.struct_size = UInt32(MemoryLayout<crudd_read>.size)
                    request.flags = withItems ? 0 : UInt32(CRUDD_READ_WITHOUT_ITEMS)
                    request.collection = collection.handle
                    request.ids = ids.baseAddress
                    request.count = ids.count
                    request.emit = Sink.emit
                    request.context = UnsafeMutableRawPointer(sink)
                    return backend.plugin.table.pointee.read(handle, &request, failure)
                }
            }
        }
        return ids.indices.map { sink.records[$0] }
    }

    package func read(_ id: String, in collection: PluginCollection) throws(PluginFault) -> PluginRecord? {
        try read([id], in: collection)[0]
    }

    /// Answers records in the order in which they came.
    ///
    /// - Parameter stopAfter: how many to take before asking the plugin to stop.
    package func scan(
        _ collection: PluginCollection, after: String = "", prefix: String = "", limit: Int = 0,
        withItems: Bool = true, stopAfter: Int = .max
    ) throws(PluginFault) -> [PluginRecord] {
        var sink = Sink(maximum: stopAfter)
        try PluginFault.throwing { failure in
            withUnsafeMutablePointer(to: &sink) { sink in
                withBytes(of: after) { after in
                    withBytes(of: prefix) { prefix in
                        var request = crudd_scan()
                        request.struct_size = UInt32(MemoryLayout<crudd_scan>.size)
                        request.flags = withItems ? 0 : UInt32(CRUDD_READ_WITHOUT_ITEMS)
                        request.collection = collection.handle
                        request.after = after
                        request.prefix = prefix
                        request.limit = limit
                        request.emit = Sink.emit
                        request.context = UnsafeMutableRawPointer(sink)
                        return backend.plugin.table.pointee.scan(handle, &request, failure)
                    }
                }
            }
        }
        return (0..<sink.records.count).compactMap { sink.records[$0] }
    }

    package func count(_ collection: PluginCollection, prefix: String = "") throws(PluginFault) -> Int {
        var count: UInt64 = 0
        try PluginFault.throwing { failure in
            withBytes(of: prefix) { prefix in
                var request = crudd_count()
                request.struct_size = UInt32(MemoryLayout<crudd_count>.size)
                request.collection = collection.handle
                request.prefix = prefix
                return backend.plugin.table.pointee.count(handle, &request, &count, failure)
            }
        }
        return Int(count)
    }
}

/// A record as a plugin emits it.
package struct PluginRecord: Equatable, Sendable {
    package let id: String
    package let item: String
    package let revision: String

    package init(_ id: String, _ item: String, revision: String = "1") {
        self.id = id
        self.item = item
        self.revision = revision
    }
}

/// Where emitted records go.
private struct Sink {
    var maximum = Int.max
    /// By index, so that one that is emitted twice or out of turn shows.
    var records: [Int: PluginRecord] = [:]

    static let emit: crudd_emit = { context, index, id, item, revision in
        // The context is the pointer to the sink of the call.
        let sink = context!.assumingMemoryBound(to: Sink.self)
        sink.pointee.records[index] = PluginRecord(id.text, item.text, revision: revision.text)
        return sink.pointee.records.count < sink.pointee.maximum ? 0 : 1
    }
}
