package import CRUDPluginABI
import Glibc
import Synchronization

/// A storage plugin: one that has been loaded and found to speak our version of the contract, or one that runs in child
/// processes, of which each backend has its own.
///
/// What was loaded is never unloaded: unloading Swift code is unsafe, and an upgrade restarts the daemon. A child loads
/// its file again each time it is started.
package struct Plugin: @unchecked Sendable {
    // @unchecked: the table is constant and lives as long as the process.

    /// The version of the contract that plugins are held to.
    package static let abiVersion = Int(CRUDD_ABI_VERSION)

    /// The name in the configuration.
    package let name: String
    /// The file that was loaded, or that children run, links resolved.
    package let path: String
    /// What the plugin calls its own version.
    package let version: String
    package let capabilities: Capabilities
    /// The function table, all of it: functions that the plugin lacks are NULL.
    package let table: UnsafePointer<crudd_plugin>
    /// How a child is started; nil for a plugin that was loaded.
    let command: ChildCommand?
    private let identity: PluginFile.Identity

    /// By path, for the life of the process: the dynamic loader does not load a path twice either, whatever has become
    /// of the file.
    private static let loaded = Mutex<[String: Plugin]>([:])

    init(
        _ file: PluginFile, version: String, capabilities: Capabilities, table: UnsafePointer<crudd_plugin>,
        command: ChildCommand?
    ) {
        name = file.name
        path = file.path
        self.version = version
        self.capabilities = capabilities.intersection(.known)
        self.table = table
        self.command = command
        identity = file.identity
    }

    /// Whether it runs in a child process.
    package var isChild: Bool { command != nil }

    /// Whether the child is a command of the configuration, not a plugin.
    package var isCommand: Bool {
        if case .executable = command?.program { true } else { false }
    }

    /// Whether the file is another one than was loaded, so that what runs is not what lies there. A child takes the
    /// file as it is whenever it is started.
    package func isOlder(than file: PluginFile) -> Bool { identity != file.identity }

    /// Loads a plugin, or finds it loaded already.
    ///
    /// - Throws: ``PluginLoadingError`` for a file that cannot be loaded, is not a plugin, or is of another version.
    package static func load(_ file: PluginFile) throws(PluginLoadingError) -> Plugin {
        if let known = loaded.withLock({ $0[file.path] }) { return known }
        let table = try PluginTable.adopt(try entry(of: file.path), of: file.path)
        let capabilities = Capabilities(rawValue: table.pointee.capabilities)
        if capabilities.contains(.fastReads), !capabilities.contains(.concurrentReads) {
            throw PluginLoadingError("\(file.path) declares fast reads without concurrent reads")
        }
        let plugin = Plugin(
            file, version: String(cString: table.pointee.version), capabilities: capabilities, table: table,
            command: nil)
        loaded.withLock { $0[file.path] = plugin }
        return plugin
    }

    /// The table that a shared object exports.
    private static func entry(of path: String) throws(PluginLoadingError) -> UnsafePointer<crudd_plugin> {
        guard let library = dlopen(path, RTLD_NOW | RTLD_LOCAL) else {
            throw PluginLoadingError(
                "\(path) cannot be loaded: \(dlerror().map { String(cString: $0) } ?? "no reason given")")
        }
        guard let symbol = dlsym(library, "crudd_plugin_entry") else {
            throw PluginLoadingError("\(path) is not a crudd plugin: it has no symbol crudd_plugin_entry")
        }
        typealias Entry = @convention(c) () -> UnsafePointer<crudd_plugin>?
        // The header says that this symbol has this type; nothing can check it.
        let entry = unsafe unsafeBitCast(symbol, to: Entry.self)
        guard let table = entry() else { throw PluginLoadingError("\(path) has no function table") }
        return table
    }

    /// Has the plugin check options, a JSON object, without touching storage.
    package func check(options: [UInt8]) throws(PluginFailure) {
        let failure = FailureReport()
        try failure.check(
            options.withUnsafeBufferPointer { table.pointee.check_options(crudd_bytes($0), failure.pointer) })
    }
}
