import CRUDPluginABI
import CRUDPluginHost

/// The methods that read.
extension ChannelService {
    func read(_ request: inout FrameReader) throws(Refusal) {
        var collection = 0
        var ids: [FrameText] = []
        var flags = 0
        try request.parameters { (request, key) throws(FrameFault) in
            if request.isKey(key, "collection") {
                collection = try request.count()
            } else if request.isKey(key, "ids") {
                try request.array { (request) throws(FrameFault) in ids.append(try request.string()) }
            } else if request.isKey(key, "items") {
                flags = try request.bool() ? 0 : CRUDD_READ_WITHOUT_ITEMS
            } else {
                try request.skip()
            }
        }
        let reader = try readerOfPlugin()
        let opened = try self.collection(collection)
        let sink = RecordWriter(self, isJSON: opened.isJSON, withItems: flags == 0, names: .index)
        let places = ids.map { crudd_bytes(request.bytes($0)) }
        sink.begin()
        try check { failure in
            places.withUnsafeBufferPointer { places in
                var call = crudd_read()
                call.struct_size = UInt32(MemoryLayout<crudd_read>.size)
                call.flags = UInt32(flags)
                call.collection = opened.handle
                call.ids = places.baseAddress
                call.count = places.count
                call.emit = RecordWriter.emit
                call.context = Unmanaged.passUnretained(sink).toOpaque()
                return table.pointee.read(reader, &call, failure)
            }
        }
        try sink.end()
    }

    func scan(_ request: inout FrameReader) throws(Refusal) {
        var collection = 0
        var after: FrameText?
        var prefix: FrameText?
        var limit = 0
        var flags = 0
        try request.parameters { (request, key) throws(FrameFault) in
            if request.isKey(key, "collection") {
                collection = try request.count()
            } else if request.isKey(key, "after") {
                after = try request.string()
            } else if request.isKey(key, "prefix") {
                prefix = try request.string()
            } else if request.isKey(key, "limit") {
                limit = try request.count()
            } else if request.isKey(key, "items") {
                flags = try request.bool() ? 0 : CRUDD_READ_WITHOUT_ITEMS
            } else {
                try request.skip()
            }
        }
        let reader = try readerOfPlugin()
        let opened = try self.collection(collection)
        let sink = RecordWriter(self, isJSON: opened.isJSON, withItems: flags == 0, names: .id)
        var call = crudd_scan()
        call.struct_size = UInt32(MemoryLayout<crudd_scan>.size)
        call.flags = UInt32(flags)
        call.collection = opened.handle
        if let after { call.after = crudd_bytes(request.bytes(after)) }
        if let prefix { call.prefix = crudd_bytes(request.bytes(prefix)) }
        call.limit = limit
        call.emit = RecordWriter.emit
        call.context = Unmanaged.passUnretained(sink).toOpaque()
        sink.begin()
        try check { table.pointee.scan(reader, &call, $0) }
        try sink.end()
    }

    func count(_ request: inout FrameReader) throws(Refusal) {
        var collection = 0
        var prefix: FrameText?
        var filter: FrameText?
        try request.parameters { (request, key) throws(FrameFault) in
            if request.isKey(key, "collection") {
                collection = try request.count()
            } else if request.isKey(key, "prefix") {
                prefix = try request.string()
            } else if request.isKey(key, "filter") {
                filter = try request.json()
            } else {
                try request.skip()
            }
        }
        let reader = try readerOfPlugin()
        var call = crudd_count()
        call.struct_size = UInt32(MemoryLayout<crudd_count>.size)
        call.collection = try self.collection(collection).handle
        if let prefix { call.prefix = crudd_bytes(request.bytes(prefix)) }
        if let filter { call.filter = crudd_bytes(request.bytes(filter)) }
        call.interrupt = ChannelService.interrupt
        call.context = Unmanaged.passUnretained(self).toOpaque()
        var count: UInt64 = 0
        try check { table.pointee.count(reader, &call, &count, $0) }
        reply.raw(#""count":"#)
        reply.integer(count)
    }

    private static let interrupt: crudd_interrupt = { context in
        guard let context else { return 0 }
        // `context` is the service that makes the call.
        return Unmanaged<ChannelService>.fromOpaque(context).takeUnretainedValue().isInterrupted ? 1 : 0
    }

    /// The collection that a request means by a number.
    func collection(_ number: Int) throws(Refusal) -> Storage.OpenCollection {
        guard let collection = storage[number] else {
            throw Refusal(status: CRUDD_INTERNAL, message: "the collection is not open")
        }
        return collection
    }
}
