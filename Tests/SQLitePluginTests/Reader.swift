import CRUDPluginABI
import Testing

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

    /// 0 where the plugin cannot tell.
    func dataVersion() -> UInt64 { table.data_version?(reader) ?? 0 }

    /// - Parameter limit: how many records the host wants before it stops the plugin.
    func read(
        _ ids: [String], in collection: OpaquePointer, withItems: Bool = true, stoppingAfter limit: Int = .max,
        call: Call = Call()
    ) throws -> [Record] {
        let arena = Arena()
        let sink = Sink(limit)
        var request = crudd_read()
        request.struct_size = UInt32(MemoryLayout<crudd_read>.size)
        request.flags = withItems ? 0 : UInt32(CRUDD_READ_WITHOUT_ITEMS)
        request.collection = collection
        request.ids = UnsafePointer(arena.array(ids.map { arena.bytes($0) }))
        request.count = ids.count
        request.emit = Sink.emit
        request.context = Unmanaged.passUnretained(sink).toOpaque()
        try call.with { call in try store.plugin.call { table.read(reader, call, &request, $0) } }
        return sink.records
    }

    /// Scans one record, and does something before the plugin's call returns.
    func scanOne(_ collection: OpaquePointer, _ meanwhile: @escaping () -> Void) throws {
        try scan(
            collection, .all, limit: 1, withItems: false, into: Sink(.max, meanwhile: meanwhile), call: Call())
    }

    /// The text of one item; nil if there is no such record.
    func item(_ id: String, in collection: OpaquePointer) throws -> String? {
        try read([id], in: collection).first?.itemText
    }

    func scan(
        _ collection: OpaquePointer, _ range: ScanRange = .all, limit: Int = 0, withItems: Bool = true,
        stoppingAfter stop: Int = .max, call: Call = Call()
    ) throws -> [Record] {
        let sink = Sink(stop)
        try scan(collection, range, limit: limit, withItems: withItems, into: sink, call: call)
        return sink.records
    }

    /// The ids that a scan emits.
    func ids(_ collection: OpaquePointer, _ range: ScanRange, limit: Int = 0, now: Int64 = Call.now) throws -> [String]
    {
        try scan(collection, range, limit: limit, call: Call(now: now)).map(\.idText)
    }

    /// What a scan emits beside ids, items and revisions.
    func metadata(_ collection: OpaquePointer, _ range: ScanRange = .all) throws -> [Metadata] {
        let sink = Sink(.max)
        try scan(collection, range, limit: 0, withItems: false, into: sink, call: Call())
        return sink.metadata
    }

    struct Metadata: Equatable {
        var expiresAt: Int64
        var sequence: UInt64
    }

    private func scan(
        _ collection: OpaquePointer, _ range: ScanRange, limit: Int, withItems: Bool, into sink: Sink, call: Call
    ) throws {
        let arena = Arena()
        var request = crudd_scan()
        request.struct_size = UInt32(MemoryLayout<crudd_scan>.size)
        request.flags = withItems ? 0 : UInt32(CRUDD_SCAN_WITHOUT_ITEMS)
        if range.isReversed { request.flags |= UInt32(CRUDD_SCAN_REVERSE) }
        request.collection = collection
        request.range = range.make(in: arena)
        request.after_key = arena.bytes(range.afterKey)
        request.after_id = arena.bytes(range.afterID)
        request.limit = limit
        request.emit = Sink.emit
        request.context = Unmanaged.passUnretained(sink).toOpaque()
        try call.with { call in try store.plugin.call { table.scan(reader, call, &request, $0) } }
    }

    func count(
        _ collection: OpaquePointer, _ range: ScanRange = .all, limit: UInt64 = 0, now: Int64 = Call.now
    ) throws -> UInt64 {
        let arena = Arena()
        var request = crudd_count()
        request.struct_size = UInt32(MemoryLayout<crudd_count>.size)
        request.collection = collection
        request.range = range.make(in: arena)
        request.limit = limit
        var count: UInt64 = 0
        try Call(now: now).with { call in try store.plugin.call { table.count(reader, call, &request, &count, $0) } }
        return count
    }

    /// Copies what is emitted.
    private final class Sink {
        private(set) var records: [Record] = []
        private(set) var metadata: [Metadata] = []
        private let limit: Int
        private let meanwhile: () -> Void

        init(_ limit: Int, meanwhile: @escaping () -> Void = {}) {
            self.limit = limit
            self.meanwhile = meanwhile
        }

        static let emit: crudd_emit = { context, index, record in
            guard let context, let record = record?.pointee else { return 1 }
            let sink = Unmanaged<Sink>.fromOpaque(context).takeUnretainedValue()
            sink.records.append(
                Record(
                    position: index, id: [UInt8](record.id), item: [UInt8](record.item),
                    revision: [UInt8](record.revision)))
            sink.metadata.append(Metadata(expiresAt: record.expires_at, sequence: record.sequence))
            sink.meanwhile()
            return sink.records.count < sink.limit ? 0 : 1
        }
    }
}
