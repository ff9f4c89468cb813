import CRUDPluginABI
import CRUDPluginHost

/// The method that queries.
extension ChannelService {
    func query(_ request: inout FrameReader) throws(Refusal) {
        guard let query = table.pointee.query, storage.plugin.capabilities.contains(.queries) else {
            throw Refusal(status: CRUDD_UNSUPPORTED, message: "the plugin does not query")
        }
        let asked = try request.query()
        let reader = try readerOfPlugin()
        let opened = try self.collection(asked.collection)
        let sink = RecordWriter(self, isJSON: opened.isJSON, withItems: asked.flags == 0, names: .id)
        var plan = crudd_plan()
        plan.struct_size = UInt32(MemoryLayout<crudd_plan>.size)
        var call = crudd_query()
        call.struct_size = UInt32(MemoryLayout<crudd_query>.size)
        call.flags = UInt32(asked.flags)
        call.collection = opened.handle
        if let filter = asked.filter { call.filter = crudd_bytes(request.bytes(filter)) }
        if let prefix = asked.prefix { call.prefix = crudd_bytes(request.bytes(prefix)) }
        if let sort = asked.sort { call.sort = crudd_bytes(request.bytes(sort)) }
        if let after = asked.after { call.after = crudd_bytes(request.bytes(after)) }
        call.limit = asked.limit
        call.emit = RecordWriter.emit
        call.interrupt = RecordWriter.interrupt
        call.context = Unmanaged.passUnretained(sink).toOpaque()
        sink.begin()
        try check { failure in
            withUnsafeMutablePointer(to: &plan) { plan in
                if asked.wantsPlan { call.plan = plan }
                return query(reader, &call, failure)
            }
        }
        try sink.end()
        if asked.wantsPlan { write(plan) }
    }

    private func write(_ plan: crudd_plan) {
        reply.raw(#","plan":{"index":"#)
        withUnsafeBytes(of: plan.index) { index in
            reply.string(UnsafeRawBufferPointer(rebasing: index.prefix { $0 != 0 }))
        }
        reply.raw(#","scanned":"#)
        reply.integer(plan.scanned)
        reply.raw("}")
    }
}

/// A query as it stands in a request.
private struct QueryInRequest {
    var collection = 0
    var filter: FrameText?
    var prefix: FrameText?
    var sort: FrameText?
    var after: FrameText?
    var limit = 0
    var flags = 0
    var wantsPlan = false
}

extension FrameReader {
    fileprivate mutating func query() throws(ChannelService.Refusal) -> QueryInRequest {
        var query = QueryInRequest()
        try parameters { (reader, key) throws(FrameFault) in
            if reader.isKey(key, "collection") {
                query.collection = try reader.count()
            } else if reader.isKey(key, "filter") {
                query.filter = try reader.json()
            } else if reader.isKey(key, "prefix") {
                query.prefix = try reader.string()
            } else if reader.isKey(key, "sort") {
                query.sort = try reader.json()
            } else if reader.isKey(key, "after") {
                query.after = try reader.json()
            } else if reader.isKey(key, "limit") {
                query.limit = try reader.count()
            } else if reader.isKey(key, "items") {
                query.flags = try reader.bool() ? 0 : CRUDD_READ_WITHOUT_ITEMS
            } else if reader.isKey(key, "plan") {
                query.wantsPlan = try reader.bool()
            } else {
                try reader.skip()
            }
        }
        return query
    }
}
