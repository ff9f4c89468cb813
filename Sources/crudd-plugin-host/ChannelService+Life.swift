import CRUDPluginABI
import CRUDPluginHost

/// The methods that concern the plugin as a whole, and collections.
extension ChannelService {
    func hello(_ request: inout FrameReader) throws(Refusal) {
        var version = 0
        var frameBytes: Int?
        try request.parameters { (request, key) throws(FrameFault) in
            if request.isKey(key, "protocol") {
                version = try request.count()
            } else if request.isKey(key, "limits") {
                try request.object { (request, key) throws(FrameFault) in
                    if request.isKey(key, "frameBytes") { frameBytes = try request.count() } else { try request.skip() }
                }
            } else {
                try request.skip()
            }
        }
        guard version == 1 else {
            throw Refusal(
                status: CRUDD_UNSUPPORTED,
                message: "this crudd-plugin-host speaks version 1 of the child protocol, the daemon version \(version)")
        }
        if let frameBytes { storage.maximumItemBytes = RecordWriter.maximumItemBytes(inFramesOf: frameBytes) }
        reply.raw(#""protocol":1,"name":"#)
        reply.string(table.pointee.name.map { String(cString: $0) } ?? "")
        reply.raw(#","version":"#)
        reply.string(storage.plugin.version)
        reply.raw(",")
        write(storage.plugin.capabilities)
    }

    func checkOptions(_ request: inout FrameReader) throws(Refusal) {
        let options = try options(&request)
        try check { table.pointee.check_options(options, $0) }
    }

    func open(_ request: inout FrameReader) throws(Refusal) {
        let options = try options(&request)
        guard storage.backend == nil else { throw Refusal(status: CRUDD_INTERNAL, message: "it is open already") }
        var opened: OpaquePointer?
        try check { table.pointee.open(options, StandardErrorLog.host, &opened, $0) }
        guard let opened else { throw Refusal(status: CRUDD_INTERNAL, message: "the plugin opened nothing") }
        storage.backend = opened
        var capabilities = storage.plugin.capabilities
        if let ask = table.pointee.backend_capabilities {
            capabilities.formIntersection(Plugin.Capabilities(rawValue: ask(opened)))
        }
        write(capabilities)
    }

    /// Work for a quiet moment.
    func idle(_ request: inout FrameReader) throws(Refusal) {
        try request.parameters { (request, _) throws(FrameFault) in try request.skip() }
        guard let idle = table.pointee.idle else {
            throw Refusal(status: CRUDD_UNSUPPORTED, message: "the plugin has nothing to do in a quiet moment")
        }
        idle(try backend())
    }

    private func options(_ request: inout FrameReader) throws(Refusal) -> crudd_bytes {
        var options: FrameText?
        try request.parameters { (request, key) throws(FrameFault) in
            if request.isKey(key, "options") { options = try request.json() } else { try request.skip() }
        }
        return crudd_bytes(options.map { request.bytes($0) } ?? UnsafeRawBufferPointer(start: nil, count: 0))
    }

    private func write(_ capabilities: Plugin.Capabilities) {
        reply.raw(#""capabilities":["#)
        for (position, name) in capabilities.names.enumerated() {
            if position > 0 { reply.raw(",") }
            reply.string(name)
        }
        reply.raw("]")
    }

    // MARK: Collections

    func openCollection(_ request: inout FrameReader) throws(Refusal) {
        var number = 0
        var name: FrameText?
        var format: FrameText?
        var indexes: [FrameText] = []
        var flags: UInt32 = 0
        try request.parameters { (request, key) throws(FrameFault) in
            if request.isKey(key, "collection") {
                number = try request.count()
            } else if request.isKey(key, "name") {
                name = try request.string()
            } else if request.isKey(key, "format") {
                format = try request.string()
            } else if request.isKey(key, "indexes") {
                try request.array { (request) throws(FrameFault) in indexes.append(try request.string()) }
            } else if request.isKey(key, "create") {
                flags = try request.bool() ? UInt32(CRUDD_OPEN_CREATE) : 0
            } else {
                try request.skip()
            }
        }
        guard let name, let format else { throw Refusal(status: CRUDD_INTERNAL, message: "a parameter is missing") }
        let backend = try backend()
        let paths = indexes.map { crudd_bytes(request.bytes($0)) }
        var specification = crudd_collection_spec()
        specification.struct_size = UInt32(MemoryLayout<crudd_collection_spec>.size)
        specification.flags = flags
        specification.name = crudd_bytes(request.bytes(name))
        specification.format = crudd_bytes(request.bytes(format))
        var opened: OpaquePointer?
        try check { failure in
            paths.withUnsafeBufferPointer { paths in
                specification.indexes = paths.baseAddress
                specification.index_count = paths.count
                return storage.write { table.pointee.open_collection(backend, &specification, &opened, failure) }
            }
        }
        guard let opened else { throw Refusal(status: CRUDD_INTERNAL, message: "the plugin opened no collection") }
        storage[number] = Storage.OpenCollection(
            handle: opened, name: Array(request.bytes(name)), isJSON: request.bytes(format).elementsEqual("json".utf8))
    }

    func dropCollection(_ request: inout FrameReader) throws(Refusal) {
        var name: FrameText?
        try request.parameters { (request, key) throws(FrameFault) in
            if request.isKey(key, "name") { name = try request.string() } else { try request.skip() }
        }
        guard let name else { throw Refusal(status: CRUDD_INTERNAL, message: "a parameter is missing") }
        let backend = try backend()
        let bytes = crudd_bytes(request.bytes(name))
        try check { failure in storage.write { table.pointee.drop_collection(backend, bytes, failure) } }
        storage.forgetCollections(named: request.bytes(name))
    }

    func listCollections(_ request: inout FrameReader) throws(Refusal) {
        try request.parameters { (request, _) throws(FrameFault) in try request.skip() }
        let backend = try backend()
        let names = NameList()
        try check { failure in
            table.pointee.list_collections(
                backend,
                { context, name in
                    guard let context else { return }
                    // `context` is the list below, which outlives the call.
                    Unmanaged<NameList>.fromOpaque(context).takeUnretainedValue().names.append(Array(name.buffer))
                }, Unmanaged.passUnretained(names).toOpaque(), failure)
        }
        reply.raw(#""names":["#)
        for (position, name) in names.names.enumerated() {
            if position > 0 { reply.raw(",") }
            name.withUnsafeBytes { reply.string($0) }
        }
        reply.raw("]")
    }

    private final class NameList {
        var names: [[UInt8]] = []
    }
}
