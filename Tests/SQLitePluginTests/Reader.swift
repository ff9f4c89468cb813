import CRUDPluginABI
import Testing

/// A record as a reader emits it. Bytes, as Swift's `==` takes some texts for equal that are not.
struct Record: Equatable {
    var position: Int
    var id: [UInt8]
    var item: [UInt8]
    var revision: [UInt8]

    init(_ position: Int, _ id: String, _ item: String, _ revision: String = "r") {
        self.init(position: position, id: Array(id.utf8), item: Array(item.utf8), revision: Array(revision.utf8))
    }

    init(position: Int, id: [UInt8], item: [UInt8], revision: [UInt8]) {
        self.position = position
        self.id = id
        self.item = item
        self.revision = revision
    }

    var idText: String { String(decoding: id, as: UTF8.self) }
    var itemText: String { String(decoding: item, as: UTF8.self) }
}

/// A plugin's reader.
// Each test uses its readers one call at a time, as the host does.
final class Reader: @unchecked Sendable {
    private let store: Store
    private let reader: OpaquePointer
    private var table: crudd_plugin { store.plugin.table.pointee }

    init(store: Store, reader: OpaquePointer) {
        self.store = store
        self.reader = reader
    }

    deinit {
        table.close_reader(reader)
    }

    func endSnapshot() { table.end_snapshot?(reader) }

    /// - Parameter limit: how many records the host wants before it stops the plugin.
    func read(
        _ ids: [String], in collection: OpaquePointer, withItems: Bool = true, stoppingAfter limit: Int = .max
    ) throws -> [Record] {
        let arena = Arena()
        let ids = ids.map { arena.bytes($0) }
        let sink = Sink(limit)
        try ids.withUnsafeBufferPointer { ids in
            var request = crudd_read()
            request.struct_size = UInt32(MemoryLayout<crudd_read>.size)
            request.flags = withItems ? 0 : UInt32(CRUDD_READ_WITHOUT_ITEMS)
            request.collection = collection
            request.ids = ids.baseAddress
            request.count = ids.count
            request.emit = Sink.emit
            request.context = Unmanaged.passUnretained(sink).toOpaque()
            try store.plugin.call { table.read(reader, &request, $0) }
        }
        return sink.records
    }

    /// The text of one item; nil if there is no such record.
    func item(_ id: String, in collection: OpaquePointer) throws -> String? {
        try read([id], in: collection).first?.itemText
    }

    func scan(
        _ collection: OpaquePointer, after: String = "", prefix: String = "", limit: Int = 0, withItems: Bool = true,
        stoppingAfter stop: Int = .max
    ) throws -> [Record] {
        let arena = Arena()
        let sink = Sink(stop)
        var request = crudd_scan()
        request.struct_size = UInt32(MemoryLayout<crudd_scan>.size)
        request.flags = withItems ? 0 : UInt32(CRUDD_READ_WITHOUT_ITEMS)
        request.collection = collection
        request.after = arena.bytes(after)
        request.prefix = arena.bytes(prefix)
        request.limit = limit
        request.emit = Sink.emit
        request.context = Unmanaged.passUnretained(sink).toOpaque()
        try store.plugin.call { table.scan(reader, &request, $0) }
        return sink.records
    }

    /// What a query emits, and how it was carried out.
    struct Result {
        var records: [Record]
        /// Empty: none.
        var index: String
        var scanned: Int

        var ids: [String] { records.map(\.idText) }
    }

    /// - Parameters:
    ///   - filter: CQL2 JSON.
    ///   - questions: how often the query may ask whether anybody waits before the answer is no.
    func query(
        _ collection: OpaquePointer, filter: String = "", sort: String = "", after: String = "", prefix: String = "",
        limit: Int = 1000, withItems: Bool = true, stoppingAfter stop: Int = .max, questions: Int = .max
    ) throws -> Result {
        let arena = Arena()
        let sink = Sink(stop, questions: questions)
        var plan = crudd_plan()
        plan.struct_size = UInt32(MemoryLayout<crudd_plan>.size)
        var request = crudd_query()
        request.struct_size = UInt32(MemoryLayout<crudd_query>.size)
        request.flags = withItems ? 0 : UInt32(CRUDD_READ_WITHOUT_ITEMS)
        request.collection = collection
        request.filter = arena.bytes(filter)
        request.sort = arena.bytes(sort)
        request.after = arena.bytes(after)
        request.prefix = arena.bytes(prefix)
        request.limit = limit
        request.emit = Sink.emit
        request.interrupt = Sink.interrupt
        request.context = Unmanaged.passUnretained(sink).toOpaque()
        let query = try #require(table.query)
        try withUnsafeMutablePointer(to: &plan) { plan in
            request.plan = plan
            try store.plugin.call { query(reader, &request, $0) }
        }
        let index = withUnsafeBytes(of: plan.index) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return Result(records: sink.records, index: index, scanned: Int(plan.scanned))
    }

    /// - Parameter filter: CQL2 JSON.
    func count(_ collection: OpaquePointer, prefix: String = "", filter: String = "") throws -> UInt64 {
        let arena = Arena()
        var request = crudd_count()
        request.struct_size = UInt32(MemoryLayout<crudd_count>.size)
        request.collection = collection
        request.prefix = arena.bytes(prefix)
        request.filter = arena.bytes(filter)
        var count: UInt64 = 0
        try store.plugin.call { table.count(reader, &request, &count, $0) }
        return count
    }

    /// Copies what is emitted.
    private final class Sink {
        private(set) var records: [Record] = []
        private let limit: Int
        private var questions: Int

        init(_ limit: Int, questions: Int = .max) {
            self.limit = limit
            self.questions = questions
        }

        static let interrupt: crudd_interrupt = { context in
            guard let context else { return 1 }
            let sink = Unmanaged<Sink>.fromOpaque(context).takeUnretainedValue()
            sink.questions -= 1
            return sink.questions < 0 ? 1 : 0
        }

        static let emit: crudd_emit = { context, index, id, item, revision in
            guard let context else { return 1 }
            let sink = Unmanaged<Sink>.fromOpaque(context).takeUnretainedValue()
            sink.records.append(
                Record(position: index, id: [UInt8](id), item: [UInt8](item), revision: [UInt8](revision)))
            return sink.records.count < sink.limit ? 0 : 1
        }
    }
}
