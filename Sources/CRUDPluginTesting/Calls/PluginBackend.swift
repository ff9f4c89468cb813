import CRUDPluginABI
import Synchronization

/// A backend opened through a plugin's table; it is closed when nobody refers to it any more.
// Whoever uses one from several threads has looked at the plugin's capabilities, and leaves `call` alone.
package final class PluginBackend: @unchecked Sendable {
    package let plugin: ExportedPlugin
    /// What the plugin can do with these options.
    package let capabilities: UInt64
    /// No record that was stored before it was opened has a higher sequence number.
    package let storedLastSequence: UInt64
    /// What tells the storage from others; 0: nothing does.
    package let identity: UInt64
    /// The parameters of every call from now on.
    package var call = PluginCall()

    private let surplus: Int
    let handle: OpaquePointer
    private let host: HostReports
    private let lastSequence: Mutex<UInt64>

    /// Opens storage.
    ///
    /// - Parameters:
    ///   - options: a JSON object.
    ///   - surplus: by how many bytes the structs that the plugin is handed are longer than this package knows them; a
    ///     multiple of 8.
    ///   - expectedStorage: the identity of the storage that must be there; 0: none must.
    package init(
        _ plugin: ExportedPlugin, options: String, surplus: Int = 0, expectedStorage: UInt64 = 0
    ) throws(CallError) {
        let host = HostReports(surplus: surplus, expectedStorage: expectedStorage)
        let memory = CallMemory(surplus: surplus)
        defer { memory.free() }
        var opened = crudd_opened()
        opened.capabilities = plugin.capabilities
        let result = memory.copy(opened)
        var handle: OpaquePointer?
        try CallError.throwing(surplus: surplus) { failure in
            PluginCall().with(memory) {
                plugin.table.pointee.open(memory.copy(options), host.pointer, $0, &handle, result, failure)
            }
        }
        guard let handle else { throw .violation("open returned CRUDD_OK and no backend") }
        self.plugin = plugin
        self.handle = handle
        self.host = host
        self.surplus = surplus
        capabilities = result.pointee.capabilities
        storedLastSequence = result.pointee.last_sequence
        identity = result.pointee.identity
        lastSequence = Mutex(result.pointee.last_sequence)
    }

    deinit { plugin.table.pointee.close(handle) }

    /// The lines that the plugin has logged so far.
    package var logged: [String] { host.lines }
    /// How often calls have said that they advance.
    package var progressCount: Int { host.progressCount }
    /// The states of its storage that the plugin has reported so far.
    package var states: [(isUp: Bool, reason: String)] { host.states }

    package func has(_ capability: Int) -> Bool { capabilities & UInt64(capability) != 0 }

    /// Whether the storage numbers changes itself, so that the numbers of mutations say only their order in a batch.
    package var numbersItself: Bool { has(CRUDD_IS_SHARED) && has(CRUDD_HAS_SEQUENCES) }

    /// Has the plugin do its maintenance.
    package func idle() {
        let memory = CallMemory(surplus: surplus)
        defer { memory.free() }
        call.with(memory) { plugin.table.pointee.idle?(handle, $0) }
    }

    /// Makes a call with memory of its own.
    func call(
        _ body: (CallMemory, UnsafePointer<crudd_call>, UnsafeMutablePointer<crudd_failure>) -> crudd_status
    ) throws(CallError) {
        let memory = CallMemory(surplus: surplus)
        defer { memory.free() }
        try CallError.throwing(surplus: surplus) { failure in call.with(memory) { body(memory, $0, failure) } }
    }

    // MARK: Collections

    /// Opens a collection, or makes it.
    ///
    /// - Parameters:
    ///   - creates: whether one that is not there is made.
    ///   - hasSequences: whether it will be scanned by sequence number.
    package func open(
        _ name: String, format: String = "json", indexes: [String] = [], creates: Bool = true,
        hasSequences: Bool = false
    ) throws(CallError) -> PluginCollection {
        var collection: OpaquePointer?
        try call { memory, call, failure in
            var specification = crudd_collection_spec()
            specification.flags =
                (creates ? UInt32(CRUDD_OPEN_CREATE) : 0) | (hasSequences ? UInt32(CRUDD_OPEN_SEQUENCES) : 0)
            specification.name = memory.copy(name)
            specification.format = memory.copy(format)
            specification.indexes = memory.array(indexes.map { Array($0.utf8) })
            specification.index_count = indexes.count
            return plugin.table.pointee.open_collection(
                handle, call, memory.copy(specification), &collection, failure)
        }
        guard let collection else { throw .violation("open_collection returned CRUDD_OK and no collection") }
        return PluginCollection(backend: self, handle: collection, indexCount: indexes.count)
    }

    /// Opens a collection only to look at it, or to remove records.
    package func openAsItIs(_ name: String, format: String) throws(CallError) -> PluginCollection {
        var collection: OpaquePointer?
        try call { memory, call, failure in
            var specification = crudd_collection_spec()
            specification.flags = UInt32(CRUDD_OPEN_AS_IT_IS)
            specification.name = memory.copy(name)
            specification.format = memory.copy(format)
            return plugin.table.pointee.open_collection(
                handle, call, memory.copy(specification), &collection, failure)
        }
        guard let collection else { throw .violation("open_collection returned CRUDD_OK and no collection") }
        return PluginCollection(backend: self, handle: collection, indexCount: 0)
    }

    package func drop(_ name: String) throws(CallError) {
        try call { memory, call, failure in
            plugin.table.pointee.drop_collection(handle, call, memory.copy(name), failure)
        }
    }

    /// The names of all collections, by byte.
    package func collections() throws(CallError) -> [String] {
        var names: [String] = []
        try call { _, call, failure in
            withUnsafeMutablePointer(to: &names) { names in
                plugin.table.pointee.list_collections(
                    handle, call,
                    { context, name in
                        // The context is the pointer to the array.
                        context!.assumingMemoryBound(to: [String].self).pointee.append(name.text)
                    }, names, failure)
            }
        }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    // MARK: Records

    package func reader() throws(CallError) -> PluginReader {
        var reader: OpaquePointer?
        try CallError.throwing { plugin.table.pointee.open_reader(handle, &reader, $0) }
        guard let reader else { throw .violation("open_reader returned CRUDD_OK and no reader") }
        return PluginReader(backend: self, handle: reader)
    }

    /// Writes mutations as one batch, numbered like the host does it: each with the next sequence number, unless it
    /// brings its own.
    package func write(_ mutations: [PluginMutation], isAtomic: Bool = false) throws(CallError) -> [PluginOutcome] {
        let numbered = number(mutations)
        var outcomes: [crudd_outcome] = []
        try call { memory, call, failure in
            let results = memory.copies([crudd_outcome](repeating: crudd_outcome(), count: mutations.count))
            var request = crudd_write()
            request.flags = isAtomic ? UInt32(CRUDD_WRITE_ATOMIC) : 0
            request.mutations = UnsafePointer(memory.copies(numbered.map { $0.raw(memory) }))
            request.mutation_size = memory.size(of: crudd_mutation.self)
            request.outcomes = results
            request.outcome_size = memory.size(of: crudd_outcome.self)
            request.count = mutations.count
            let status = plugin.table.pointee.write(handle, call, memory.copy(request), failure)
            outcomes = mutations.indices.map { index in
                let outcome = UnsafeRawPointer(results) + index * memory.size(of: crudd_outcome.self)
                return outcome.loadUnaligned(as: crudd_outcome.self)
            }
            return status
        }
        var results: [PluginOutcome] = []
        for outcome in outcomes { results.append(try PluginOutcome(outcome)) }
        return results
    }

    /// The highest sequence number so far.
    package var highestSequence: UInt64 { lastSequence.withLock { $0 } }

    /// Leaves sequence numbers out, as if they had been used.
    func skipSequences(_ count: UInt64) {
        lastSequence.withLock { $0 += count }
    }

    private func number(_ mutations: [PluginMutation]) -> [PluginMutation] {
        lastSequence.withLock { last in
            mutations.map { mutation in
                var mutation = mutation
                let sequence = mutation.sequence ?? last + 1
                mutation.sequence = sequence
                last = max(last, sequence)
                return mutation
            }
        }
    }
}

/// An open collection of a backend. Two are equal if they are one object of the plugin, however each was opened.
package struct PluginCollection: Equatable, @unchecked Sendable {
    package let backend: PluginBackend
    let handle: OpaquePointer
    /// How many indexes it was opened with. Records are written with the value of the last opening.
    let indexCount: Int

    package static func == (left: PluginCollection, right: PluginCollection) -> Bool { left.handle == right.handle }
}
