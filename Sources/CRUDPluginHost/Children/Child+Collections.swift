import CRUDPluginABI

extension Child {
    /// Has the child check options, without touching storage.
    func check(options: [UInt8]) throws(PluginFailure) {
        try call("checkOptions", for: .upkeep) { request in
            request.raw(#""options":"#)
            request.raw(options)
        }
    }

    /// Has the child open its storage.
    func open(options: [UInt8]) throws(PluginFailure) {
        try call("open", for: .upkeep) { request in
            request.raw(#""options":"#)
            request.raw(options)
        } _: { reader throws(FrameFault) in
            try reader.object { (reader, key) throws(FrameFault) in
                if reader.isKey(key, "capabilities") {
                    self.narrow(to: try reader.capabilities())
                } else {
                    try reader.skip()
                }
            }
            return true
        }
    }

    /// A quiet moment. A child that has nothing to do in one says so once.
    func idle() {
        guard takesIdle else { return }
        do throws(PluginFailure) {
            try call("idle", for: .upkeep)
        } catch {
            if error.status == CRUDD_UNSUPPORTED { takesIdle = false }
        }
    }

    /// Opens a collection.
    func openCollection(_ specification: crudd_collection_spec) throws(PluginFailure) -> ChildCollection {
        let collection = makeCollection(specification)
        let indexes = UnsafeBufferPointer(start: specification.indexes, count: specification.index_count)
        try call("openCollection", for: .preparation) { request in
            request.raw(#""collection":"#)
            request.integer(collection.number)
            request.raw(#","name":"#)
            request.string(specification.name.buffer)
            request.raw(#","format":"#)
            request.string(specification.format.buffer)
            request.raw(#","indexes":["#)
            for (position, path) in indexes.enumerated() {
                if position > 0 { request.raw(",") }
                request.string(path.buffer)
            }
            request.raw(Int(specification.flags) & CRUDD_OPEN_CREATE != 0 ? #"],"create":true"# : #"],"create":false"#)
        }
        // Not one that is not there, which may be asked for as often as a client likes.
        keep(collection)
        return collection
    }

    /// Names every collection that is there.
    func listCollections(_ emit: (UnsafeRawBufferPointer) -> Void) throws(PluginFailure) {
        try call("listCollections", for: .reading) { _ in
        } _: { reader throws(FrameFault) in
            try reader.object { (reader, key) throws(FrameFault) in
                guard reader.isKey(key, "names") else { return try reader.skip() }
                try reader.array { (reader) throws(FrameFault) in
                    emit(reader.bytes(try reader.string()))
                    reader.forgetTexts()
                }
            }
            return true
        }
    }
}
