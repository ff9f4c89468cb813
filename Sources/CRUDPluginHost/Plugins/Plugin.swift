package import CRUDPluginABI
import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// A storage plugin: one that has been loaded and found to speak our version of the contract, or one that runs in child
/// processes, of which each backend has its own.
///
/// What was loaded is never unloaded: unloading Swift code is unsafe, and an upgrade restarts the daemon. A child loads
/// its file anew each time it is started.
package struct Plugin: @unchecked Sendable {
    // @unchecked: the table is constant and lives as long as the process.

    /// The version of the contract that this host speaks.
    package static let abiVersion = CRUDD_ABI_VERSION

    /// The name in the configuration.
    package let name: String
    /// The file that was loaded, or that children run, links resolved.
    package let path: String
    /// What the plugin calls its own version.
    package let version: String
    package let capabilities: Capabilities
    package let table: UnsafePointer<crudd_plugin>
    /// How a child is started; nil for a plugin that was loaded.
    let command: ChildCommand?
    let identity: PluginFile.Identity

    /// By path, for the life of the process: the dynamic loader does not load a path twice either, whatever has become
    /// of the file.
    private static let loaded = Mutex<[String: Plugin]>([:])

    /// What a plugin can do beyond what all can.
    package struct Capabilities: OptionSet, Sendable {
        package let rawValue: UInt64

        package init(rawValue: UInt64) {
            self.rawValue = rawValue
        }

        package static let readsConcurrently = Capabilities(rawValue: UInt64(CRUDD_CAN_READ_CONCURRENTLY))
        package static let readsFast = Capabilities(rawValue: UInt64(CRUDD_CAN_READ_FAST))
        package static let transactions = Capabilities(rawValue: UInt64(CRUDD_HAS_TRANSACTIONS))
        package static let durable = Capabilities(rawValue: UInt64(CRUDD_IS_DURABLE))
        package static let queries = Capabilities(rawValue: UInt64(CRUDD_CAN_QUERY))

        /// Their names, as `backend.list` and `collection.describe` show them and children tell them.
        package var names: [String] { Self.all.filter { contains($0.0) }.map(\.1) }

        /// Inserts the one with a name; one that is not known is passed over.
        mutating func insert(named name: String) {
            for (capability, known) in Self.all where known == name { insert(capability) }
        }

        private static let all: [(Capabilities, String)] = [
            (.readsConcurrently, "concurrentReads"), (.readsFast, "fastReads"), (.transactions, "transactions"),
            (.durable, "durable"), (.queries, "queries"),
        ]
    }

    /// Whether the file is another one than was loaded, so that what runs is not what lies there. A child takes the file as
    /// it is whenever it is started.
    package func isOlder(than file: PluginFile) -> Bool { identity != file.identity }

    /// Loads a plugin, or finds it loaded already.
    ///
    /// - Throws: ``PluginFault`` for a file that is not there, not to be trusted, no plugin, or of another version.
    package static func load(_ file: PluginFile) throws(PluginFault) -> Plugin {
        if let known = loaded.withLock({ $0[file.path] }) { return known }
        let plugin = try open(file)
        loaded.withLock { $0[file.path] = plugin }
        return plugin
    }

    private static func open(_ file: PluginFile) throws(PluginFault) -> Plugin {
        let path = file.path
        guard let library = dlopen(path, RTLD_NOW | RTLD_LOCAL) else {
            throw PluginFault(
                "\(path) cannot be loaded: \(dlerror().map { String(cString: $0) } ?? "no reason given")")
        }
        guard let symbol = dlsym(library, "crudd_plugin_entry") else {
            throw PluginFault("\(path) is no crudd plugin: it has no symbol crudd_plugin_entry")
        }
        typealias Entry = @convention(c) () -> UnsafePointer<crudd_plugin>?
        // The header says that this symbol has this type; nothing can check it.
        let entry = unsafe unsafeBitCast(symbol, to: Entry.self)
        guard let table = entry() else { throw PluginFault("\(path) has no function table") }
        // The two fields that come first in every version decide whether the others may be looked at.
        guard table.pointee.abi_version == CRUDD_ABI_VERSION else {
            throw PluginFault(
                "\(path) speaks version \(table.pointee.abi_version) of the plugin contract; this crudd speaks "
                    + "version \(CRUDD_ABI_VERSION)")
        }
        guard Int(table.pointee.struct_size) >= MemoryLayout<crudd_plugin>.size, isComplete(table.pointee) else {
            throw PluginFault("\(path) lacks a name, a version or functions of the plugin contract")
        }
        let capabilities = Capabilities(rawValue: table.pointee.capabilities)
        if capabilities.contains(.readsFast), !capabilities.contains(.readsConcurrently) {
            throw PluginFault("\(path) declares fast reads without concurrent reads")
        }
        if capabilities.contains(.queries), table.pointee.query == nil {
            throw PluginFault("\(path) declares queries without a function for them")
        }
        return Plugin(
            name: file.name, path: path, version: table.pointee.version.map { String(cString: $0) } ?? "",
            capabilities: capabilities, table: table, command: nil, identity: file.identity)
    }

    /// Has the plugin check options, without touching storage.
    package func check(options: [UInt8]) throws(PluginFailure) {
        let failure = FailureReport()
        try failure.check(
            options.withUnsafeBufferPointer { table.pointee.check_options(crudd_bytes($0), failure.pointer) })
    }

    private static func isComplete(_ table: crudd_plugin) -> Bool {
        table.name != nil && table.version != nil && table.check_options != nil && table.open != nil
            && table.close != nil && table.open_collection != nil
            && table.drop_collection != nil && table.list_collections != nil && table.open_reader != nil
            && table.close_reader != nil && table.read != nil && table.scan != nil && table.count != nil
            && table.write != nil
    }
}

/// Why a plugin file is not loaded: one line for the administrator.
package struct PluginFault: Error, CustomStringConvertible {
    package var description: String

    package init(_ description: String) {
        self.description = description
    }
}

extension crudd_bytes {
    /// The bytes of a buffer, which must outlive the value.
    package init(_ buffer: UnsafeBufferPointer<UInt8>) {
        self.init(data: buffer.baseAddress, size: buffer.count)
    }

    /// The bytes of a buffer, which must outlive the value.
    package init(_ buffer: UnsafeRawBufferPointer) {
        self.init(data: buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), size: buffer.count)
    }

    /// The same bytes as a buffer, valid as long as the other side promises.
    package var buffer: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: data, count: size) }
}
