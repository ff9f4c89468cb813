import CRUDJSON
import CRUDModel
import CRUDPluginABI
import CRUDPluginHost

/// The methods that read.
extension ChannelService {
    func read(_ request: inout FrameReader) throws(Refusal) {
        var collection: FrameText?
        var ids: [FrameText] = []
        var flags = 0
        try request.parameters { (request, key) throws(FrameFault) in
            if request.isKey(key, "collection") {
                collection = try request.string()
            } else if request.isKey(key, "ids") {
                try request.array { (request) throws(FrameFault) in ids.append(try request.string()) }
            } else if request.isKey(key, "items") {
                flags = try request.bool() ? 0 : CRUDD_READ_WITHOUT_ITEMS
            } else {
                try request.skip()
            }
        }
        let reader = try openReader()
        let opened = try self.collection(collection, request)
        let sink = RecordWriter(self, isJSON: opened.isJSON, withItems: flags == 0, names: .index)
        let places = ids.map { crudd_bytes(request.bytes($0)) }
        reply.raw(#""records":["#)
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
        var collection: FrameText?
        var after: FrameText?
        var prefix: FrameText?
        var limit = 0
        var flags = 0
        try request.parameters { (request, key) throws(FrameFault) in
            if request.isKey(key, "collection") {
                collection = try request.string()
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
        let reader = try openReader()
        let opened = try self.collection(collection, request)
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
        reply.raw(#""records":["#)
        try check { table.pointee.scan(reader, &call, $0) }
        try sink.end()
    }

    func count(_ request: inout FrameReader) throws(Refusal) {
        var collection: FrameText?
        var prefix: FrameText?
        try request.parameters { (request, key) throws(FrameFault) in
            if request.isKey(key, "collection") {
                collection = try request.string()
            } else if request.isKey(key, "prefix") {
                prefix = try request.string()
            } else {
                try request.skip()
            }
        }
        let reader = try openReader()
        var call = crudd_count()
        call.struct_size = UInt32(MemoryLayout<crudd_count>.size)
        call.collection = try self.collection(collection, request).handle
        if let prefix { call.prefix = crudd_bytes(request.bytes(prefix)) }
        var count: UInt64 = 0
        try check { table.pointee.count(reader, &call, &count, $0) }
        reply.raw(#""count":"#)
        reply.integer(count)
    }

    /// The collection with a name that the request gives.
    func collection(_ name: FrameText?, _ request: borrowing FrameReader) throws(Refusal) -> Storage.OpenCollection {
        guard let name, let collection = storage.collection(named: request.bytes(name)) else {
            throw Refusal(status: CRUDD_INTERNAL, message: "the collection is not open")
        }
        return collection
    }
}

/// Writes the records that the plugin emits into the reply, until it is long enough.
private final class RecordWriter {
    /// What tells a record from the others.
    enum Name {
        case index, id
    }

    private let service: ChannelService
    private let isJSON: Bool
    private let withItems: Bool
    private let name: Name
    private var isFirst = true
    private var isLong = false
    private var refusal: ChannelService.Refusal?
    private var scanner = JSONScanner()

    init(_ service: ChannelService, isJSON: Bool, withItems: Bool, names name: Name) {
        self.service = service
        self.isJSON = isJSON
        self.withItems = withItems
        self.name = name
    }

    static let emit: crudd_emit = { context, index, id, item, revision in
        guard let context else { return 1 }
        // `context` is the writer, which outlives the call of the plugin.
        let writer = Unmanaged<RecordWriter>.fromOpaque(context).takeUnretainedValue()
        return writer.write(index, id.buffer, item.buffer, revision.buffer) ? 0 : 1
    }

    /// Completes the result.
    func end() throws(ChannelService.Refusal) {
        if let refusal { throw refusal }
        service.reply.raw(isLong ? #"],"more":true"# : "]")
    }

    private func write(
        _ index: Int, _ id: UnsafeRawBufferPointer, _ item: UnsafeRawBufferPointer, _ revision: UnsafeRawBufferPointer
    ) -> Bool {
        guard !isLong, revision.count <= Naming.maximumRevisionBytes, revision.allSatisfy({ $0 < 0x80 }) else {
            refusal = ChannelService.Refusal(
                status: CRUDD_CORRUPT, message: "the plugin emits a revision that is not at most 64 bytes of ASCII")
            return false
        }
        service.reply.raw(isFirst ? "{" : ",{")
        isFirst = false
        switch name {
        case .index:
            service.reply.raw(#""index":"#)
            service.reply.integer(index)
        case .id:
            guard Naming.fault(id.bindMemory(to: UInt8.self).span, maximum: Naming.maximumIDBytes) == nil else {
                refusal = ChannelService.Refusal(
                    status: CRUDD_CORRUPT, message: "the plugin emits an id that is none")
                return false
            }
            service.reply.raw(#""id":"#)
            service.reply.string(id)
        }
        service.reply.raw(#","revision":"#)
        service.reply.string(revision)
        // Bytes that are no JSON although they ought to be are the daemon's to judge.
        if withItems { service.reply.item(item, isJSON: isJSON && isText(item)) }
        service.reply.raw("}")
        isLong = service.reply.count >= service.replyBytes
        return !isLong
    }

    private func isText(_ item: UnsafeRawBufferPointer) -> Bool {
        let text = item.bindMemory(to: UInt8.self).span
        scanner.reset()
        guard (try? scanner.value(text)) != nil else { return false }
        return scanner.isAtEnd(text)
    }
}
