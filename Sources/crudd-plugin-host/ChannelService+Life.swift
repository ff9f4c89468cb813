import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import CRUDThreads

/// The methods that concern the plugin as a whole, and collections.
extension ChannelService {
    func hello(_ request: inout FrameReader) throws(PluginFailure) {
        var version = 0
        var frameBytes: Int?
        try request.parameters { (request, key) throws(ProtocolViolation) in
            switch key {
            case "protocol": version = try request.count()
            case "limits":
                try request.object(with: "frameBytes") { (request) throws(ProtocolViolation) in
                    frameBytes = try request.count()
                }
            case "busyPoll": AdaptiveSpin.limit = .microseconds(try request.count())
            default: try request.skip()
            }
        }
        guard version == Child.protocolVersion else {
            throw PluginFailure(
                status: CRUDD_UNSUPPORTED,
                message: "this crudd-plugin-host speaks version \(Child.protocolVersion) of the child protocol, the "
                    + "daemon version \(version)")
        }
        if let frameBytes { storage.maximumItemBytes = Emission.maximumItemBytes(inFramesOf: frameBytes) }
        reply.raw(#""protocol":"#, Child.protocolVersion)
        reply.raw(#","name":"#, String(cString: table.pointee.name))
        reply.raw(#","version":"#, storage.plugin.version)
        reply.raw(",")
        write(storage.plugin.capabilities.names + ["queries"])
        if let option = storage.plugin.storageOption { reply.raw(#","storageOption":"#, option) }
        if let advice = storage.plugin.backupAdvice { reply.raw(#","backupAdvice":"#, advice) }
    }

    func checkOptions(_ request: inout FrameReader) throws(PluginFailure) {
        write(try storage.plugin.capabilities(withOptions: try options(&request)).names)
    }

    func open(_ request: inout FrameReader) throws(PluginFailure) {
        var options: [UInt8] = []
        var expected: UInt64 = 0
        try request.parameters { (request, key) throws(ProtocolViolation) in
            switch key {
            case "options": options = Array(try request.json())
            case "expected": expected = try request.integer()
            default: try request.skip()
            }
        }
        guard storage.opened == nil else {
            throw PluginFailure(status: CRUDD_INTERNAL, message: "the storage is open already")
        }
        let opened = try storage.plugin.open(options: options, host: daemon.host(expectingStorage: expected))
        storage.opened = opened
        write(opened.capabilities.names)
        reply.raw(#","lastSequence":"#, opened.lastSequence)
        if let identity = opened.identity { reply.raw(#","identity":"#, identity.rawValue) }
        if let counter = opened.commitCounter {
            reply.raw(#","commitCounter":{"path":"#, counter.path)
            reply.raw(#","offset":"#, counter.offset)
            reply.raw("}")
        }
    }

    func idle(_ request: inout FrameReader) throws(PluginFailure) {
        guard let idle = table.pointee.idle else {
            throw PluginFailure(status: CRUDD_UNSUPPORTED, message: "the plugin has no maintenance to do")
        }
        try request.parameters { (request, _) throws(ProtocolViolation) in try request.skip() }
        idle(try backend(), context.begin())
    }

    func version(_ request: inout FrameReader) throws(PluginFailure) {
        guard let version = table.pointee.data_version else {
            throw PluginFailure(status: CRUDD_UNSUPPORTED, message: "the plugin cannot tell")
        }
        try request.parameters { (request, _) throws(ProtocolViolation) in try request.skip() }
        reply.raw(#""version":"#, version(try reader().beginRead()))
    }

    private func options(_ request: inout FrameReader) throws(PluginFailure) -> [UInt8] {
        var options: [UInt8] = []
        try request.parameters { (request, key) throws(ProtocolViolation) in
            if "options" ~= key { options = Array(try request.json()) } else { try request.skip() }
        }
        return options
    }

    private func write(_ capabilities: [String]) {
        reply.raw(#""capabilities":"#)
        reply.array(capabilities) { $0.string($1) }
    }

    // MARK: Collections

    func openCollection(_ request: inout FrameReader) throws(PluginFailure) {
        var number = 0
        var name = ""
        var format = ""
        var indexes: [String] = []
        var flags: UInt32 = 0
        try request.parameters { (request, key) throws(ProtocolViolation) in
            switch key {
            case "collection": number = try request.count()
            case "name": name = try request.text()
            case "format": format = try request.text()
            case "indexes":
                try request.array { (request) throws(ProtocolViolation) in indexes.append(try request.text()) }
            case "create": if try request.bool() { flags |= UInt32(CRUDD_OPEN_CREATE) }
            case "sequences": if try request.bool() { flags |= UInt32(CRUDD_OPEN_SEQUENCES) }
            case "asItIs": if try request.bool() { flags |= UInt32(CRUDD_OPEN_AS_IT_IS) }
            default: try request.skip()
            }
        }
        guard let format = CollectionRule.Format(rawValue: format) else {
            throw PluginFailure(status: CRUDD_UNSUPPORTED, message: "there is no format \(format)")
        }
        let paths = indexes.compactMap { PropertyPath(text: $0) }
        let backend = try backend()
        var handle: OpaquePointer?
        try failure.check(
            crudd_collection_spec.with(name: Array(name.utf8), format: format, flags: flags, indexes: paths) {
                specification in
                storage.clock.write {
                    table.pointee.open_collection(backend, context.begin(), specification, &handle, failure.pointer)
                }
            })
        guard let handle else {
            throw PluginFailure(status: CRUDD_INTERNAL, message: "the plugin opened no collection")
        }
        let collection = ServedCollection(
            name: name, format: format, indexPaths: paths, PluginHandle(pointer: handle))
        storage.add(collection, as: number, isAsItIs: flags & UInt32(CRUDD_OPEN_AS_IT_IS) != 0)
    }

    func dropCollection(_ request: inout FrameReader) throws(PluginFailure) {
        var name = ""
        try request.parameters { (request, key) throws(ProtocolViolation) in
            if "name" ~= key { name = try request.text() } else { try request.skip() }
        }
        let backend = try backend()
        try failure.check(
            name.withUTF8 { name in
                storage.clock.write {
                    table.pointee.drop_collection(backend, context.begin(), crudd_bytes(name), failure.pointer)
                }
            })
        storage.removeCollections(named: name)
    }

    func listCollections(_ request: inout FrameReader) throws(PluginFailure) {
        try request.parameters { (request, _) throws(ProtocolViolation) in try request.skip() }
        state.emission = Emission()
        reply.raw(#""names":["#)
        try failure.check(
            table.pointee.list_collections(
                try backend(), context.begin(),
                { context, name in
                    guard let context else { return }
                    // The context is the service that makes the call.
                    Unmanaged<ChannelService>.fromOpaque(context).takeUnretainedValue().write(name: name.buffer)
                }, Unmanaged.passUnretained(self).toOpaque(), failure.pointer))
        reply.raw("]")
    }

    private func write(name: UnsafeRawBufferPointer) {
        if !state.emission.isFirst { reply.raw(",") }
        state.emission.isFirst = false
        reply.string(name)
    }
}
