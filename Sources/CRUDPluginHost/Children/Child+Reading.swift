import CRUDJSON
import CRUDModel
import CRUDPluginABI

/// Reading through a child. A reply that is long comes in several frames.
extension Child {
    /// How many records one `scan` asks for at most: whoever walks may stop at any record.
    private static let scanPage = 1000

    /// Looks ids up.
    func read(_ request: crudd_read) throws(PluginFailure) {
        let ids = UnsafeBufferPointer(start: request.ids, count: request.count)
        try call("read", for: .reading) { frame in
            frame.lookup(
                ids, in: ChildTable.collection(request.collection).number,
                withItems: Int(request.flags) & CRUDD_READ_WITHOUT_ITEMS == 0)
        } _: { reader throws(FrameFault) in
            try reader.lookup(of: ids.count) { index, record in
                record.emit(index, ids[index].buffer, request.emit, request.context)
            }
        }
    }

    /// Walks records by id.
    func scan(_ request: crudd_scan) throws(PluginFailure) {
        var after = Array(request.after.buffer)
        var index = 0
        var isWanted = true
        while isWanted {
            let page = request.limit == 0 ? Self.scanPage : min(request.limit - index, Self.scanPage)
            let end = index + page
            try call("scan", for: .reading) { frame in
                frame.collection(request.collection)
                frame.raw(#","after":"#)
                after.withUnsafeBytes { frame.string($0) }
                frame.raw(#","prefix":"#)
                frame.string(request.prefix.buffer)
                frame.raw(#","limit":"#)
                frame.integer(page)
                frame.items(flags: request.flags)
            } _: { reader throws(FrameFault) in
                try reader.records { record throws(FrameFault) in
                    let id = try record.checkedID()
                    guard index < end, id.starts(with: request.prefix.buffer),
                        after.isEmpty || after.lexicographicallyPrecedes(id)
                    else { throw FrameFault("an id that was not asked for, or not in its order") }
                    after.replaceSubrange(0..., with: id)
                    if isWanted { isWanted = record.emit(index, id, request.emit, request.context) }
                    index += 1
                }
                return isWanted
            }
            if index < end || index == request.limit { return }
        }
    }

    /// Counts records.
    func count(_ request: crudd_count) throws(PluginFailure) -> UInt64 {
        var count: Int?
        try call("count", for: .reading, interrupt: Interrupt(request.interrupt, request.context)) { frame in
            frame.collection(request.collection)
            frame.raw(#","prefix":"#)
            frame.string(request.prefix.buffer)
            frame.json("filter", request.filter)
        } _: { reader throws(FrameFault) in
            try reader.object { (reader, key) throws(FrameFault) in
                if reader.isKey(key, "count") { count = try reader.count() } else { try reader.skip() }
            }
            if count == nil { throw FrameFault("a reply without a count") }
            return true
        }
        return UInt64(count ?? 0)
    }

    /// Finds records by what is in them.
    func query(_ request: crudd_query) throws(PluginFailure) {
        var index = 0
        try call("query", for: .reading, interrupt: Interrupt(request.interrupt, request.context)) { frame in
            frame.collection(request.collection)
            frame.json("filter", request.filter)
            frame.raw(#","prefix":"#)
            frame.string(request.prefix.buffer)
            frame.json("sort", request.sort)
            frame.json("after", request.after)
            frame.raw(#","limit":"#)
            frame.integer(request.limit)
            frame.items(flags: request.flags)
            if request.plan != nil { frame.raw(#","plan":true"#) }
        } _: { reader throws(FrameFault) in
            var isWanted = true
            try reader.records { record throws(FrameFault) in
                let id = try record.checkedID()
                guard index < request.limit else { throw FrameFault("more records than were asked for") }
                if isWanted { isWanted = record.emit(index, id, request.emit, request.context) }
                index += 1
            } plan: { (reader) throws(FrameFault) in
                try reader.plan(into: request.plan)
            }
            return isWanted
        }
    }
}

extension RecordInReply {
    /// The id of a record that has to bring its own.
    fileprivate func checkedID() throws(FrameFault) -> UnsafeRawBufferPointer {
        guard let id, Naming.fault(id.bindMemory(to: UInt8.self).span, maximum: Naming.maximumIDBytes) == nil else {
            throw FrameFault("a record without an id, or with one that is none")
        }
        return id
    }

    /// Hands the record over; answers whether another one is wanted.
    fileprivate func emit(
        _ index: Int, _ id: UnsafeRawBufferPointer, _ emit: crudd_emit, _ context: UnsafeMutableRawPointer?
    ) -> Bool {
        emit(context, index, crudd_bytes(id), crudd_bytes(item), crudd_bytes(revision)) == 0
    }
}

extension FrameReader {
    fileprivate mutating func plan(into plan: UnsafeMutablePointer<crudd_plan>?) throws(FrameFault) {
        try object { (reader, key) throws(FrameFault) in
            if reader.isKey(key, "index") {
                let index = reader.bytes(try reader.string())
                plan?.pointee.set(index: index)
            } else if reader.isKey(key, "scanned") {
                plan?.pointee.scanned = UInt64(try reader.count())
            } else {
                try reader.skip()
            }
        }
    }
}

extension FrameWriter {
    /// Names a collection, as the first member.
    fileprivate mutating func collection(_ collection: OpaquePointer?) {
        raw(#""collection":"#)
        integer(ChildTable.collection(collection).number)
    }

    /// Says whether items are wanted.
    fileprivate mutating func items(flags: UInt32) {
        raw(Int(flags) & CRUDD_READ_WITHOUT_ITEMS != 0 ? #","items":false"# : #","items":true"#)
    }

    /// Writes a member that is JSON already; none if it is empty.
    fileprivate mutating func json(_ name: StaticString, _ json: crudd_bytes) {
        guard json.size > 0 else { return }
        raw(#",""#)
        raw(name)
        raw(#"":"#)
        raw(json.buffer)
    }
}

extension crudd_plan {
    /// Sets the path of the index that served, cut to what there is room for.
    fileprivate mutating func set(index path: UnsafeRawBufferPointer) {
        withUnsafeMutableBytes(of: &index) { index in
            let path = path.prefix(index.count - 1)
            index.copyBytes(from: path)
            index[path.count] = 0
        }
    }
}
