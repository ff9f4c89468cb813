import CRUDJSON
import CRUDPluginABI
import CRUDThreads

extension Child {
    /// The version of the child protocol.
    package static let protocolVersion = 2

    /// Has the child say what it is.
    func greet() throws(PluginFailure) {
        var greeting = Greeting()
        var version = 0
        try call("hello", for: .maintenance) { request in
            request.raw(#""protocol":"#, Self.protocolVersion)
            request.raw(#","backend":"#, command.backend)
            request.raw(#","limits":{"frameBytes":"#, limits.frameBytes)
            request.raw(#"},"busyPoll":"#, Int(AdaptiveSpin.limit / .microseconds(1)))
        } _: { reader throws(ProtocolViolation) in
            try reader.object { (reader, key) throws(ProtocolViolation) in
                switch key {
                case "protocol": version = try reader.count()
                case "version": greeting.version = try reader.text()
                case "capabilities": (greeting.capabilities, greeting.canSearch) = try reader.capabilities()
                case "storageOption": greeting.storageOption = try reader.text()
                case "backupAdvice": greeting.backupAdvice = try reader.text()
                default: try reader.skip()
                }
            }
            return true
        }
        guard version == Self.protocolVersion else {
            throw PluginFailure(
                status: CRUDD_UNSUPPORTED,
                message: "the child speaks version \(version) of the child protocol; this crudd speaks version "
                    + "\(Self.protocolVersion)")
        }
        set(greeting)
    }

    /// Has the child check options, a JSON object, and say what it can do with them, without touching storage.
    func capabilities(withOptions options: [UInt8]) throws(PluginFailure) -> Plugin.Capabilities {
        var told = Plugin.Capabilities.known
        try call("checkOptions", for: .maintenance) { request in
            request.raw(#""options":"#)
            request.raw(options)
        } _: { reader throws(ProtocolViolation) in
            try reader.object { (reader, key) throws(ProtocolViolation) in
                if "capabilities" ~= key { told = try reader.capabilities().known } else { try reader.skip() }
            }
            return true
        }
        return capabilities.intersection(told)
    }

    /// Has the child open its storage.
    ///
    /// - Parameter expected: the identity that it must have; 0: any.
    /// - Returns: what the child tells of it.
    func open(options: [UInt8], expected: UInt64) throws(PluginFailure) -> Opening {
        var opening = Opening()
        try call("open", for: .maintenance) { request in
            request.raw(#""options":"#)
            request.raw(options)
            if expected != 0 { request.raw(#","expected":"#, expected) }
        } _: { reader throws(ProtocolViolation) in
            try reader.object { (reader, key) throws(ProtocolViolation) in
                switch key {
                case "capabilities": self.narrow(to: try reader.capabilities().known)
                case "lastSequence": opening.lastSequence = try reader.integer()
                case "identity": opening.identity = StorageIdentity(try reader.integer())
                case "commitCounter": opening.commitCounter = try reader.commitCounter()
                default: try reader.skip()
                }
            }
            return true
        }
        return opening
    }

    /// What a child tells of its storage.
    struct Opening {
        /// No record has exceeded it.
        var lastSequence: UInt64 = 0
        var identity: StorageIdentity?
        /// Where commits are counted.
        var commitCounter: CommitCounter.Place?
    }

    /// Has the child do maintenance while nothing is queued. One that has none says so once.
    func idle() {
        callOptional(.idle, "idle")
    }

    /// A number that changes when somebody else has written; 0 where the child cannot tell.
    func dataVersion() -> UInt64 {
        var version: UInt64 = 0
        callOptional(.version, "version") { reader throws(ProtocolViolation) in
            try reader.object(with: "version") { (reader) throws(ProtocolViolation) in version = try reader.integer() }
            return true
        }
        return version
    }

    private func callOptional(
        _ method: OptionalMethod, _ name: StaticString,
        _ result: ChildReply.ReadResult = ChildReply.skipResult
    ) {
        guard supports(method) else { return }
        do throws(PluginFailure) {
            try call(name, for: .maintenance, { _ in }, result)
        } catch {
            if error.status == CRUDD_UNSUPPORTED { lacks(method) }
        }
    }

    // MARK: Collections

    /// Opens a collection.
    func openCollection(_ specification: crudd_collection_spec) throws(PluginFailure) -> ChildCollection {
        let collection = makeCollection()
        let flags = Int(specification.flags)
        try call("openCollection", for: .preparation) { request in
            request.raw(#""collection":"#, collection.number)
            request.raw(#","name":"#, specification.name.buffer)
            request.raw(#","format":"#, specification.format.buffer)
            request.raw(#","indexes":"#)
            let indexes = UnsafeBufferPointer(start: specification.indexes, count: specification.index_count)
            request.array(indexes) { $0.string($1.buffer) }
            request.raw(#","create":"#, flags & CRUDD_OPEN_CREATE != 0)
            request.raw(#","sequences":"#, flags & CRUDD_OPEN_SEQUENCES != 0)
            if flags & CRUDD_OPEN_AS_IT_IS != 0 { request.raw(#","asItIs":"#, true) }
        }
        // Not one that is not there, which may be asked for as often as a client likes.
        return keep(
            collection,
            as: .init(name: Array(specification.name.buffer), format: Array(specification.format.buffer)))
    }

    /// Removes a collection with its records.
    func dropCollection(named name: UnsafeRawBufferPointer) throws(PluginFailure) {
        try call("dropCollection", for: .writing) { request in
            request.raw(#""name":"#, name)
        }
        forgetCollections(named: Array(name))
    }

    /// Names every collection that is there.
    func listCollections(_ emit: (crudd_bytes) -> Void) throws(PluginFailure) {
        try call("listCollections", for: .reading) { _ in
        } _: { reader throws(ProtocolViolation) in
            try reader.object(with: "names") { (reader) throws(ProtocolViolation) in
                try reader.array { (reader) throws(ProtocolViolation) in
                    var name = try reader.text()
                    name.withUTF8 { emit(crudd_bytes($0)) }
                }
            }
            return true
        }
    }
}

extension FrameReader {
    fileprivate mutating func commitCounter() throws(ProtocolViolation) -> CommitCounter.Place {
        var place = CommitCounter.Place(path: "", offset: 0)
        try object { (reader, key) throws(ProtocolViolation) in
            switch key {
            case "path": place.path = try reader.text()
            case "offset": place.offset = try reader.integer()
            default: try reader.skip()
            }
        }
        return place
    }

    /// Takes a list of capabilities by name; one that is not known is passed over.
    mutating func capabilities() throws(ProtocolViolation) -> (
        known: Plugin.Capabilities, canSearch: Bool
    ) {
        var known: Plugin.Capabilities = []
        var canSearch = false
        try array { (reader) throws(ProtocolViolation) in
            let name = try reader.string()
            known.formUnion(Plugin.Capabilities.capability { $0 ~= name })
            if "queries" ~= name { canSearch = true }
        }
        return (known, canSearch)
    }
}
