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

    /// What the plugin has had to say.
    final class Log: Sendable {
        let lines = Mutex<[String]>([])
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
        var opened: OpaquePointer?
        let arena = Arena()
        do {
            try plugin.call { plugin.table.pointee.open(arena.bytes(options), host, &opened, $0) }
        } catch {
            host.deallocate()
            throw error
        }
        guard let opened else { throw Failure("opened nothing") }
        self.plugin = plugin
        self.host = host
        backend = opened
    }

    /// Opens a SQLite database.
    convenience init(path: String, synchronous: String = "full") throws {
        try self.init(try .sqlite, options: #"{"path": "\#(path)", "synchronous": "\#(synchronous)"}"#)
    }

    deinit {
        plugin.table.pointee.close(backend)
        host.deallocate()
    }

    var logLines: [String] { log.lines.withLock { $0 } }

    var capabilities: UInt64 {
        plugin.table.pointee.backend_capabilities?(backend) ?? plugin.table.pointee.capabilities
    }

    func idle() { plugin.table.pointee.idle?(backend) }

    // MARK: Collections

    func collection(
        _ name: String, format: String = "json", creates: Bool = true, indexes: [String] = []
    ) throws -> OpaquePointer {
        let arena = Arena()
        let indexes = indexes.map { arena.bytes($0) }
        var specification = crudd_collection_spec()
        specification.struct_size = UInt32(MemoryLayout<crudd_collection_spec>.size)
        specification.flags = creates ? UInt32(CRUDD_OPEN_CREATE) : 0
        specification.name = arena.bytes(name)
        specification.format = arena.bytes(format)
        var opened: OpaquePointer?
        try indexes.withUnsafeBufferPointer { indexes in
            specification.indexes = indexes.baseAddress
            specification.index_count = indexes.count
            try plugin.call { plugin.table.pointee.open_collection(backend, &specification, &opened, $0) }
        }
        guard let opened else { throw Failure("opened nothing") }
        return opened
    }

    func dropCollection(_ name: String) throws {
        let arena = Arena()
        try plugin.call { plugin.table.pointee.drop_collection(backend, arena.bytes(name), $0) }
    }

    func collectionNames() throws -> [String] {
        final class Names { var names: [String] = [] }
        let names = Names()
        try plugin.call {
            plugin.table.pointee.list_collections(
                backend,
                { context, name in
                    guard let context else { return }
                    Unmanaged<Names>.fromOpaque(context).takeUnretainedValue().names
                        .append(String(decoding: [UInt8](name), as: UTF8.self))
                }, Unmanaged.passUnretained(names).toOpaque(), $0)
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
    func write(_ changes: [Change], to collection: OpaquePointer, isAtomic: Bool = false) throws -> [Outcome] {
        try write(changes.map { ($0, collection) }, isAtomic: isAtomic)
    }

    func write(_ changes: [(Change, OpaquePointer)], isAtomic: Bool = false) throws -> [Outcome] {
        let arena = Arena()
        let mutations = changes.map { $0.0.mutation(of: $0.1, in: arena) }
        var outcomes = [crudd_outcome](repeating: crudd_outcome(), count: changes.count)
        try mutations.withUnsafeBufferPointer { mutations in
            try outcomes.withUnsafeMutableBufferPointer { outcomes in
                var request = crudd_write()
                request.struct_size = UInt32(MemoryLayout<crudd_write>.size)
                request.flags = isAtomic ? UInt32(CRUDD_WRITE_ATOMIC) : 0
                request.mutations = mutations.baseAddress
                request.outcomes = outcomes.baseAddress
                request.count = mutations.count
                try plugin.call { plugin.table.pointee.write(backend, &request, $0) }
            }
        }
        return outcomes.map(Outcome.init)
    }
}
