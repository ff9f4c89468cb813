import CRUDPluginABI
import CRUDTestSupport
import Synchronization

/// An open backend, used as the host uses one.
// Its calls are made as the contract allows; what it holds is constant.
final class Store: @unchecked Sendable {
    let plugin: Plugin
    private let backend: OpaquePointer
    private let host: UnsafeMutablePointer<crudd_host>
    private let log = Log()
    private let opened: crudd_opened
    /// Of the next mutation.
    private let nextSequence: Mutex<UInt64>

    /// What the plugin has told the host.
    final class Log: Sendable {
        let lines = Mutex<[String]>([])
        let progressReports = Atomic(0)
    }

    /// - Parameter options: a JSON object.
    init(_ plugin: Plugin, options: String) throws {
        let host = UnsafeMutablePointer<crudd_host>.allocate(capacity: 1)
        host.initialize(to: crudd_host())
        host.pointee.struct_size = UInt32(MemoryLayout<crudd_host>.size)
        host.pointee.context = Unmanaged.passUnretained(log).toOpaque()
        host.pointee.log = { context, _, message in
            guard let context else { return }
            let line = String(decoding: [UInt8](message), as: UTF8.self)
            Unmanaged<Log>.fromOpaque(context).takeUnretainedValue().lines.withLock { $0.append(line) }
        }
        host.pointee.progress = { context, _, _ in
            guard let context else { return }
            Unmanaged<Log>.fromOpaque(context).takeUnretainedValue().progressReports.add(1, ordering: .relaxed)
        }
        var backend: OpaquePointer?
        var opened = crudd_opened()
        opened.struct_size = UInt32(MemoryLayout<crudd_opened>.size)
        opened.capabilities = plugin.table.pointee.capabilities
        let arena = Arena()
        do {
            try Call().with { call in
                try plugin.call { plugin.table.pointee.open(arena.bytes(options), host, call, &backend, &opened, $0) }
            }
        } catch {
            host.deallocate()
            throw error
        }
        guard let backend else { throw Failure("opened nothing") }
        self.plugin = plugin
        self.host = host
        self.backend = backend
        self.opened = opened
        nextSequence = Mutex(opened.last_sequence + 1)
    }

    /// Opens a SQLite database.
    ///
    /// - Parameter mmap: nil: not given.
    convenience init(path: String, synchronous: String = "full", mmap: Bool? = nil) throws {
        let mmap = mmap.map { #", "mmap": \#($0)"# } ?? ""
        try self.init(try .sqlite, options: #"{"path": "\#(path)", "synchronous": "\#(synchronous)"\#(mmap)}"#)
    }

    deinit {
        plugin.table.pointee.close(backend)
        host.deallocate()
    }

    var logLines: [String] { log.lines.withLock { $0 } }

    var progressReports: Int { log.progressReports.load(ordering: .relaxed) }

    var capabilities: UInt64 { opened.capabilities }

    /// What the plugin has said when it was opened.
    var lastSequence: UInt64 { opened.last_sequence }

    func idle() { Call().with { plugin.table.pointee.idle?(backend, $0) } }

    // MARK: Collections

    func collection(
        _ name: String, format: String = "json", creates: Bool = true, keepsSequences: Bool = false,
        indexes: [String] = []
    ) throws -> OpaquePointer {
        let arena = Arena()
        var specification = crudd_collection_spec()
        specification.struct_size = UInt32(MemoryLayout<crudd_collection_spec>.size)
        specification.flags = creates ? UInt32(CRUDD_OPEN_CREATE) : 0
        if keepsSequences { specification.flags |= UInt32(CRUDD_OPEN_SEQUENCES) }
        specification.name = arena.bytes(name)
        specification.format = arena.bytes(format)
        specification.indexes = UnsafePointer(arena.array(indexes.map { arena.bytes($0) }))
        specification.index_count = indexes.count
        var opened: OpaquePointer?
        try Call().with { call in
            try plugin.call { plugin.table.pointee.open_collection(backend, call, &specification, &opened, $0) }
        }
        guard let opened else { throw Failure("opened nothing") }
        return opened
    }

    func dropCollection(_ name: String) throws {
        let arena = Arena()
        try Call().with { call in
            try plugin.call { plugin.table.pointee.drop_collection(backend, call, arena.bytes(name), $0) }
        }
    }

    func collectionNames() throws -> [String] {
        final class Names { var names: [String] = [] }
        let names = Names()
        let emit: crudd_emit_name = { context, name in
            guard let context else { return }
            Unmanaged<Names>.fromOpaque(context).takeUnretainedValue().names
                .append(String(decoding: [UInt8](name), as: UTF8.self))
        }
        let context = Unmanaged.passUnretained(names).toOpaque()
        try Call().with { call in
            try plugin.call { plugin.table.pointee.list_collections(backend, call, emit, context, $0) }
        }
        return names.names
    }

    // MARK: Records

    func reader() throws -> Reader {
        var opened: OpaquePointer?
        try plugin.call { plugin.table.pointee.open_reader(backend, &opened, $0) }
        guard let opened else { throw Failure("opened nothing") }
        return Reader(store: self, reader: opened)
    }

    /// Writes a batch; its outcomes, one for each change.
    @discardableResult
    func write(
        _ changes: [Change], to collection: OpaquePointer, isAtomic: Bool = false, now: Int64 = Call.now
    ) throws -> [Outcome] {
        try write(changes.map { ($0, collection) }, isAtomic: isAtomic, now: now)
    }

    /// - Parameter layout: the sizes of the structs as the host knows them.
    func write(
        _ changes: [(Change, OpaquePointer)], isAtomic: Bool = false, now: Int64 = Call.now,
        layout: WriteLayout = WriteLayout()
    ) throws -> [Outcome] {
        let arena = Arena()
        let first = nextSequence.withLock { next in
            defer { next += UInt64(changes.count) }
            return next
        }
        let mutations = changes.enumerated().map { index, change in
            change.0.mutation(
                of: change.1, sequence: first + UInt64(index), in: arena, recordBytes: layout.recordBytes)
        }
        return try write(mutations: mutations, isAtomic: isAtomic, now: now, layout: layout)
    }

    func write(
        mutations: [crudd_mutation], isAtomic: Bool = false, now: Int64 = Call.now, layout: WriteLayout = WriteLayout()
    ) throws -> [Outcome] {
        let arena = Arena()
        let elements = UnsafeMutableRawPointer(
            arena.array([UInt64](repeating: .max, count: mutations.count * layout.mutationBytes / 8)))
        let outcomes = UnsafeMutableRawPointer(
            arena.array([UInt64](repeating: 0, count: mutations.count * layout.outcomeBytes / 8)))
        for (index, mutation) in mutations.enumerated() {
            let size = min(layout.mutationBytes, MemoryLayout<crudd_mutation>.size)
            withUnsafeBytes(of: mutation) {
                (elements + index * layout.mutationBytes).copyMemory(from: $0.baseAddress!, byteCount: size)
            }
        }
        var request = crudd_write()
        request.struct_size = UInt32(MemoryLayout<crudd_write>.size)
        request.flags = isAtomic ? UInt32(CRUDD_WRITE_ATOMIC) : 0
        request.mutations = UnsafePointer(elements.assumingMemoryBound(to: crudd_mutation.self))
        request.mutation_size = layout.mutationBytes
        request.outcomes = outcomes.assumingMemoryBound(to: crudd_outcome.self)
        request.outcome_size = layout.outcomeBytes
        request.count = mutations.count
        try Call(now: now).with { call in
            try plugin.call { plugin.table.pointee.write(backend, call, &request, $0) }
        }
        return mutations.indices.map { Outcome((outcomes + $0 * layout.outcomeBytes).load(as: crudd_outcome.self)) }
    }

    /// The sizes of mutations, records and outcomes, multiples of 8.
    struct WriteLayout {
        var mutationBytes = MemoryLayout<crudd_mutation>.size
        var recordBytes = MemoryLayout<crudd_record>.size
        var outcomeBytes = MemoryLayout<crudd_outcome>.size
    }
}
