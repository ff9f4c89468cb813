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
    ) throws(CallFault) -> [PluginRecord?] {
        var sink = Sink(positions: ids.count)
        let fields = PluginMutation.Fields(ids.map { Array($0.utf8) })
        defer { withExtendedLifetime(fields) {} }
        try CallFault.throwing { failure in
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
        if let breach = sink.breach { throw .breach("read \(breach)") }
        return ids.indices.map { sink.records[$0] }
    }

    /// Lets go of the reader's view.
    package func endSnapshot() { backend.plugin.table.pointee.end_snapshot?(handle) }

    package func read(_ id: String, in collection: PluginCollection) throws(CallFault) -> PluginRecord? {
        try read([id], in: collection)[0]
    }

    /// Answers records in the order in which they came.
    ///
    /// - Parameter stopAfter: how many to take before asking the plugin to stop.
    package func scan(
        _ collection: PluginCollection, after: String = "", prefix: String = "", limit: Int = 0,
        withItems: Bool = true, stopAfter: Int = .max
    ) throws(CallFault) -> [PluginRecord] {
        var sink = Sink(maximum: stopAfter)
        try CallFault.throwing { failure in
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
        if let breach = sink.breach { throw .breach("scan \(breach)") }
        return (0..<sink.records.count).compactMap { sink.records[$0] }
    }

    /// - Parameter filter: CQL2 JSON; empty: all.
    package func count(
        _ collection: PluginCollection, prefix: String = "", filter: String = ""
    ) throws(CallFault) -> Int {
        var count: UInt64 = 0
        let fields = PluginMutation.Fields([prefix, filter].map { Array($0.utf8) })
        defer { withExtendedLifetime(fields) {} }
        try CallFault.throwing { failure in
            var request = crudd_count()
            request.struct_size = UInt32(MemoryLayout<crudd_count>.size)
            request.collection = collection.handle
            request.prefix = fields.bytes[0]
            request.filter = fields.bytes[1]
            return backend.plugin.table.pointee.count(handle, &request, &count, failure)
        }
        return Int(count)
    }

    /// Answers the records of a query in the order in which they came.
    ///
    /// - Parameters:
    ///   - filter: CQL2 JSON; empty: all.
    ///   - sort: as the protocol has it; empty: by id.
    ///   - after: a place in that order; empty: from the start.
    package func query(
        _ collection: PluginCollection, filter: String, sort: String, after: String, prefix: String, limit: Int,
        withItems: Bool
    ) throws(CallFault) -> [PluginRecord] {
        var sink = Sink()
        let fields = PluginMutation.Fields([filter, prefix, sort, after].map { Array($0.utf8) })
        defer { withExtendedLifetime(fields) {} }
        guard let query = backend.plugin.table.pointee.query else { throw .breach("there is no `query`") }
        do {
            try CallFault.throwing { failure in
                withUnsafeMutablePointer(to: &sink) { sink in
                    var request = crudd_query()
                    request.struct_size = UInt32(MemoryLayout<crudd_query>.size)
                    request.flags = withItems ? 0 : UInt32(CRUDD_READ_WITHOUT_ITEMS)
                    request.collection = collection.handle
                    request.filter = fields.bytes[0]
                    request.prefix = fields.bytes[1]
                    request.sort = fields.bytes[2]
                    request.after = fields.bytes[3]
                    request.limit = limit
                    request.emit = Sink.emit
                    request.context = UnsafeMutableRawPointer(sink)
                    return query(handle, &request, failure)
                }
            }
        } catch {
            if error.status == CRUDD_UNSUPPORTED, !sink.records.isEmpty {
                throw .breach("query refused after it had emitted \(sink.records.count) records")
            }
            throw error
        }
        if let breach = sink.breach { throw .breach("query \(breach)") }
        return (0..<sink.records.count).compactMap { sink.records[$0] }
    }
}

/// A record as a plugin emits it. Two are equal if all their bytes are, whatever Unicode says of them.
package struct PluginRecord: Equatable, Sendable {
    package let id: String
    package let bytes: [UInt8]
    package let revision: String

    package init(_ id: String, bytes: [UInt8], revision: String = "1") {
        self.id = id
        self.bytes = bytes
        self.revision = revision
    }

    package init(_ id: String, _ item: String, revision: String = "1") {
        self.init(id, bytes: Array(item.utf8), revision: revision)
    }

    /// The item as a text.
    package var item: String { String(decoding: bytes, as: UTF8.self) }

    package static func == (left: PluginRecord, right: PluginRecord) -> Bool {
        left.id.utf8.elementsEqual(right.id.utf8) && left.bytes == right.bytes
            && left.revision.utf8.elementsEqual(right.revision.utf8)
    }
}

extension PluginRecord: CustomStringConvertible {
    package var description: String {
        "id \(id.debugDescription), revision \(revision.debugDescription), item \(Excerpt(bytes))"
    }
}

/// Where emitted records go.
private struct Sink {
    /// How many ids were asked for; nil: records are counted from 0.
    var positions: Int?
    var maximum = Int.max
    var records: [Int: PluginRecord] = [:]
    /// What the plugin has done that it must not.
    var breach: String?

    static let emit: crudd_emit = { context, index, id, item, revision in
        // The context is the pointer to the sink of the call.
        let sink = context!.assumingMemoryBound(to: Sink.self)
        return sink.pointee.take(index, PluginRecord(id.text, bytes: item.array, revision: revision.text)) ? 0 : 1
    }

    /// Answers whether to go on.
    private mutating func take(_ index: Int, _ record: PluginRecord) -> Bool {
        if records.count >= maximum { breach = "went on when it was told to stop" }
        if let positions, index >= positions { breach = "emitted position \(index) of \(positions)" }
        if positions == nil, index != records.count { breach = "emitted record \(records.count) as \(index)" }
        if records[index] != nil { breach = "emitted position \(index) twice" }
        records[index] = record
        return records.count < maximum
    }
}
