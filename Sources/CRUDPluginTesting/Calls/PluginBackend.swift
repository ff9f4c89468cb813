import CRUDPluginABI
import Synchronization

/// A backend opened through a plugin's table; it is closed when nobody refers to it any more.
// Whoever uses one from several threads has asked the plugin's capabilities.
package final class PluginBackend: @unchecked Sendable {
    package let plugin: ExportedPlugin
    private let handle: OpaquePointer
    private let host: UnsafeMutablePointer<crudd_host>
    private let log: Log

    /// - Parameter options: a JSON object.
    package init(_ plugin: ExportedPlugin, options: String) throws(CallFault) {
        self.plugin = plugin
        let log = Log()
        let host = UnsafeMutablePointer<crudd_host>.allocate(capacity: 1)
        host.initialize(to: crudd_host())
        host.pointee.struct_size = UInt32(MemoryLayout<crudd_host>.size)
        host.pointee.context = Unmanaged.passUnretained(log).toOpaque()
        host.pointee.log = { context, _, message in
            // The context is the log above, which lives as long as the backend.
            Unmanaged<Log>.fromOpaque(context!).takeUnretainedValue().append(message.text)
        }
        var handle: OpaquePointer?
        do {
            try CallFault.throwing { failure in
                withBytes(of: options) { plugin.table.pointee.open($0, host, &handle, failure) }
            }
        } catch {
            host.deallocate()
            throw error
        }
        guard let handle else {
            host.deallocate()
            throw .breach("open answered CRUDD_OK and no backend")
        }
        self.log = log
        self.host = host
        self.handle = handle
    }

    deinit {
        plugin.table.pointee.close(handle)
        host.deallocate()
    }

    /// What the plugin has said so far.
    package var logged: [String] { log.lines }

    package var capabilities: UInt64 {
        plugin.table.pointee.backend_capabilities?(handle) ?? plugin.table.pointee.capabilities
    }

    /// Has the plugin do what it does in a quiet moment.
    package func idle() { plugin.table.pointee.idle?(handle) }

    /// Opens a collection, or makes it.
    package func open(
        _ name: String, format: String = "json", indexes: [String] = [], creates: Bool = true
    ) throws(CallFault) -> PluginCollection {
        var collection: OpaquePointer?
        let fields = PluginMutation.Fields([name, format].map { Array($0.utf8) })
        let paths = PluginMutation.Fields(indexes.map { Array($0.utf8) })
        defer { withExtendedLifetime((fields, paths)) {} }
        try CallFault.throwing { failure in
            paths.bytes.withUnsafeBufferPointer { paths in
                var specification = crudd_collection_spec()
                specification.struct_size = UInt32(MemoryLayout<crudd_collection_spec>.size)
                specification.flags = creates ? UInt32(CRUDD_OPEN_CREATE) : 0
                specification.name = fields.bytes[0]
                specification.format = fields.bytes[1]
                specification.indexes = paths.baseAddress
                specification.index_count = paths.count
                return plugin.table.pointee.open_collection(handle, &specification, &collection, failure)
            }
        }
        guard let collection else { throw .breach("open_collection answered CRUDD_OK and no collection") }
        return PluginCollection(backend: self, handle: collection)
    }

    package func drop(_ name: String) throws(CallFault) {
        try CallFault.throwing { failure in
            withBytes(of: name) { plugin.table.pointee.drop_collection(handle, $0, failure) }
        }
    }

    package func collections() throws(CallFault) -> [String] {
        var names: [String] = []
        try CallFault.throwing { failure in
            withUnsafeMutablePointer(to: &names) { names in
                plugin.table.pointee.list_collections(
                    handle,
                    { context, name in
                        // The context is the pointer to the array.
                        context!.assumingMemoryBound(to: [String].self).pointee.append(name.text)
                    }, names, failure)
            }
        }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    package func reader() throws(CallFault) -> PluginReader {
        var reader: OpaquePointer?
        try CallFault.throwing { plugin.table.pointee.open_reader(handle, &reader, $0) }
        guard let reader else { throw .breach("open_reader answered CRUDD_OK and no reader") }
        return PluginReader(backend: self, handle: reader)
    }

    /// Writes mutations as one batch.
    package func write(
        _ mutations: [PluginMutation], isAtomic: Bool = false
    ) throws(CallFault) -> [PluginOutcome] {
        var outcomes = [crudd_outcome](repeating: crudd_outcome(), count: mutations.count)
        let arenas = mutations.map { $0.fields }
        // Each array is kept by `arenas` until the call is over, so that its address holds.
        defer { withExtendedLifetime(arenas) {} }
        let raw = zip(mutations, arenas).map { $0.raw($1) }
        try CallFault.throwing { failure in
            raw.withUnsafeBufferPointer { raw in
                outcomes.withUnsafeMutableBufferPointer { outcomes in
                    var request = crudd_write()
                    request.struct_size = UInt32(MemoryLayout<crudd_write>.size)
                    request.flags = isAtomic ? UInt32(CRUDD_WRITE_ATOMIC) : 0
                    request.mutations = raw.baseAddress
                    request.outcomes = outcomes.baseAddress
                    request.count = raw.count
                    return plugin.table.pointee.write(handle, &request, failure)
                }
            }
        }
        var results: [PluginOutcome] = []
        for outcome in outcomes { results.append(try PluginOutcome(outcome)) }
        return results
    }
}

/// What a plugin has logged.
private final class Log: Sendable {
    private let written = Mutex<[String]>([])

    var lines: [String] { written.withLock { $0 } }

    func append(_ line: String) {
        written.withLock { $0.append(line) }
    }
}

/// An open collection of a backend.
package struct PluginCollection: @unchecked Sendable {
    package let backend: PluginBackend
    let handle: OpaquePointer
}
