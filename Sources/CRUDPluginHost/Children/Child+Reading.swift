import CRUDJSON
import CRUDModel
import CRUDPluginABI

/// Reading through a child: replies are of a modest size, so that what is long comes in several.
extension Child {
    /// How many records a reply to `scan` is asked for at most.
    private static let scanPage = 1000

    /// Looks ids up.
    func read(_ request: crudd_read) throws(PluginFailure) {
        let collection = ChildTable.collection(request.collection)
        let ids = UnsafeBufferPointer(start: request.ids, count: request.count)
        // Where each id of the next call stands in the request; nil: where it stands itself.
        var places: [Int]?
        while true {
            var answer = ReadAnswer(count: places?.count ?? ids.count)
            try call("read", for: .reading) { frame in
                frame.collection(collection)
                frame.raw(#","ids":["#)
                for place in 0..<answer.count {
                    if place > 0 { frame.raw(",") }
                    frame.string(ids[places?[place] ?? place].buffer)
                }
                frame.raw(Int(request.flags) & CRUDD_READ_WITHOUT_ITEMS != 0 ? #"],"items":false"# : #"],"items":true"#)
            } _: { reader throws(FrameFault) in
                try reader.records { (reader, record) throws(FrameFault) in
                    guard let index = record.index, index < answer.count else { throw FrameFault("a wrong index") }
                    answer.find(index)
                    if answer.isStopped { return }
                    let place = places?[index] ?? index
                    answer.isStopped =
                        request.emit(
                            request.context, place, ids[place], crudd_bytes(record.item), crudd_bytes(record.revision))
                        != 0
                } more: {
                    answer.hasMore = $0
                }
            }
            if answer.isStopped || !answer.hasMore { return }
            guard answer.foundCount > 0 else { throw nonsense("read: more is to come after a reply without records") }
            let rest = answer.missing
            if rest.isEmpty { return }
            places = rest.map { places?[$0] ?? $0 }
        }
    }

    /// Walks records by id.
    func scan(_ request: crudd_scan) throws(PluginFailure) {
        let collection = ChildTable.collection(request.collection)
        var after = Array(request.after.buffer)
        var index = 0
        while true {
            let rest = request.limit == 0 ? Int.max : request.limit - index
            let page = min(rest, Self.scanPage)
            var found = 0
            var isStopped = false
            var hasMore = false
            try call("scan", for: .reading) { frame in
                frame.collection(collection)
                frame.raw(#","after":"#)
                after.withUnsafeBytes { frame.string($0) }
                frame.raw(#","prefix":"#)
                frame.string(request.prefix.buffer)
                frame.raw(#","limit":"#)
                frame.integer(page)
                frame.raw(Int(request.flags) & CRUDD_READ_WITHOUT_ITEMS != 0 ? #","items":false"# : #","items":true"#)
            } _: { reader throws(FrameFault) in
                try reader.records { (reader, record) throws(FrameFault) in
                    guard let id = record.id, id.starts(with: request.prefix.buffer),
                        after.isEmpty || after.lexicographicallyPrecedes(id), found < page,
                        Naming.fault(Array(id).span, maximum: Naming.maximumIDBytes) == nil
                    else { throw FrameFault("an id that was not asked for, or not in its order") }
                    after.replaceSubrange(0..., with: id)
                    found += 1
                    if isStopped { return }
                    isStopped =
                        request.emit(
                            request.context, index, crudd_bytes(id), crudd_bytes(record.item),
                            crudd_bytes(record.revision)) != 0
                    index += 1
                } more: {
                    hasMore = $0
                }
            }
            if isStopped || (request.limit > 0 && index >= request.limit) { return }
            guard hasMore || found == page else { return }
            guard found > 0 else { throw nonsense("scan: more is to come after a reply without records") }
        }
    }

    /// Counts records.
    func count(_ request: crudd_count) throws(PluginFailure) -> UInt64 {
        var count: Int?
        try call("count", for: .reading) { frame in
            frame.collection(ChildTable.collection(request.collection))
            frame.raw(#","prefix":"#)
            frame.string(request.prefix.buffer)
        } _: { reader throws(FrameFault) in
            try reader.object { (reader, key) throws(FrameFault) in
                if reader.isKey(key, "count") { count = try reader.count() } else { try reader.skip() }
            }
            if count == nil { throw FrameFault("a reply without a count") }
        }
        return UInt64(count ?? 0)
    }
}

/// What has come of the ids of one call.
private struct ReadAnswer {
    let count: Int
    var isStopped = false
    var hasMore = false
    private(set) var foundCount = 0
    private var found: [Bool]

    init(count: Int) {
        self.count = count
        found = Array(repeating: false, count: count)
    }

    mutating func find(_ index: Int) {
        if !found[index] { foundCount += 1 }
        found[index] = true
    }

    var missing: [Int] { found.indices.filter { !found[$0] } }
}

/// A record in a reply, its texts valid until the next one is read.
private struct RecordInReply {
    var index: Int?
    var id: UnsafeRawBufferPointer?
    var item = UnsafeRawBufferPointer(start: nil, count: 0)
    var revision = UnsafeRawBufferPointer(start: nil, count: 0)
}

extension FrameReader {
    /// Reads a result with `records` and `more`.
    fileprivate mutating func records(
        _ record: (borrowing FrameReader, RecordInReply) throws(FrameFault) -> Void, more: (Bool) -> Void
    ) throws(FrameFault) {
        try object { (reader, key) throws(FrameFault) in
            if reader.isKey(key, "records") {
                try reader.array { (reader) throws(FrameFault) in
                    try record(reader, try reader.record())
                    reader.forgetTexts()
                }
            } else if reader.isKey(key, "more") {
                more(try reader.bool())
            } else {
                try reader.skip()
            }
        }
    }

    private mutating func record() throws(FrameFault) -> RecordInReply {
        var record = RecordInReply()
        var id: FrameText?
        var item: FrameText?
        var revision: FrameText?
        try object { (reader, key) throws(FrameFault) in
            if reader.isKey(key, "index") {
                record.index = try reader.count()
            } else if reader.isKey(key, "id") {
                id = try reader.string()
            } else if reader.isKey(key, "revision") {
                revision = try reader.string()
            } else if let found = try reader.item(key) {
                item = found
            } else {
                try reader.skip()
            }
        }
        // All are decoded: from here on they stay where they are.
        guard let revision else { throw FrameFault("a record without a revision") }
        record.revision = bytes(revision)
        guard record.revision.count <= Naming.maximumRevisionBytes, record.revision.allSatisfy({ $0 < 0x80 }) else {
            throw FrameFault("a revision that is not at most \(Naming.maximumRevisionBytes) characters of ASCII")
        }
        record.id = id.map { bytes($0) }
        if let item { record.item = bytes(item) }
        return record
    }
}

extension FrameWriter {
    /// Names a collection, as the first member.
    fileprivate mutating func collection(_ collection: ChildCollection) {
        raw(#""collection":"#)
        raw(collection.name)
    }
}
