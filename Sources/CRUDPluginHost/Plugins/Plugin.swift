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
    /// A JSON pointer to the option that says where the storage is; nil where there is none.
    package let storageOption: String?
    /// What an administrator uses where it makes no backups; nil where it does not say.
    package let backupAdvice: String?
    /// The function table, all of it: functions that the plugin lacks are NULL.
    package let table: UnsafePointer<crudd_plugin>
    /// How a child is started; nil for a plugin that was loaded.
    let command: ChildCommand?

    /// By path, for the life of the process: the dynamic loader does not load a path twice either, whatever has become
    /// of the file.
    private static let loaded = Mutex<[String: Loaded]>([:])

    /// What became of a file that has been loaded.
    private struct Loaded {
        let identity: PluginFile.Identity
        let plugin: Result<Plugin, PluginLoadingError>
    }

    init(
        _ file: PluginFile, version: String, capabilities: Capabilities, storageOption: String?,
        backupAdvice: String?, table: UnsafePointer<crudd_plugin>, command: ChildCommand?
    ) {
        name = file.name
        path = file.path
        self.version = version
        self.capabilities = capabilities.intersection(.known)
        self.storageOption = storageOption
        self.backupAdvice = backupAdvice
        self.table = table
        self.command = command
    }

    /// Whether it runs in a child process.
    package var isChild: Bool { command != nil }

    /// Whether the child is a command of the configuration, not a plugin.
    package var isCommand: Bool {
        if case .executable = command?.program { true } else { false }
    }

    /// Loads a plugin, or finds it loaded already.
    ///
    /// - Throws: ``PluginLoadingError`` for a file that cannot be loaded, is not a plugin, is of another version, or is
    ///   not the one that was loaded from its path.
    package static func load(_ file: PluginFile) throws(PluginLoadingError) -> Plugin {
        let path = file.path
        if let known = loaded.withLock({ $0[path] }) {
            guard known.identity == file.identity else {
                throw PluginLoadingError("\(path) has changed since it was loaded: restart the daemon to use it")
            }
            return try known.plugin.get()
        }
        guard let library = dlopen(path, RTLD_NOW | RTLD_LOCAL) else {
            throw PluginLoadingError(
                "\(path) cannot be loaded: \(dlerror().map { String(cString: $0) } ?? "no reason given")")
        }
        let plugin = Result { () throws(PluginLoadingError) in
            try file.checkUnchanged()
            return try Plugin(file, library)
        }
        loaded.withLock { $0[path] = Loaded(identity: file.identity, plugin: plugin) }
        return try plugin.get()
    }

    private init(_ file: PluginFile, _ library: UnsafeMutableRawPointer) throws(PluginLoadingError) {
        let table = try PluginTable.adopt(try Self.entry(library, of: file.path), of: file.path)
        let capabilities = Capabilities(rawValue: table.pointee.capabilities)
        if capabilities.contains(.fastReads), !capabilities.contains(.concurrentReads) {
            throw PluginLoadingError("\(file.path) declares fast reads without concurrent reads")
        }
        self.init(
            file, version: String(cString: table.pointee.version), capabilities: capabilities,
            storageOption: table.pointee.storage_option.map { String(cString: $0) },
            backupAdvice: table.pointee.backup_advice.map { String(cString: $0) }, table: table, command: nil)
    }

    /// The table that a shared object exports.
    private static func entry(
        _ library: UnsafeMutableRawPointer, of path: String
    ) throws(PluginLoadingError) -> UnsafePointer<crudd_plugin> {
        guard let symbol = dlsym(library, "crudd_plugin_entry") else {
            throw PluginLoadingError("\(path) is not a crudd plugin: it has no symbol crudd_plugin_entry")
        }
        typealias Entry = @convention(c) () -> UnsafePointer<crudd_plugin>?
        // The header says that this symbol has this type; nothing can check it.
        let entry = unsafe unsafeBitCast(symbol, to: Entry.self)
        guard let table = entry() else { throw PluginLoadingError("\(path) has no function table") }
        return table
    }

    /// Has a plugin that was loaded check options, a JSON object, without touching storage.
    package func check(options: [UInt8]) -> OptionCheck {
        OptionCheck(of: options) { options throws(PluginFailure) in try capabilities(withOptions: options) }
    }

    /// What a plugin that was loaded can do with options, a JSON object, as far as it can tell without touching
    /// storage.
    ///
    /// - Throws: the first failure that it finds in them.
    package func capabilities(withOptions options: [UInt8]) throws(PluginFailure) -> Capabilities {
        let failure = FailureReport()
        try failure.check(
            options.withUnsafeBufferPointer { table.pointee.check_options(crudd_bytes($0), failure.pointer) })
        guard let capabilitiesWith = table.pointee.capabilities_with else { return capabilities }
        let told = options.withUnsafeBufferPointer { capabilitiesWith(crudd_bytes($0)) }
        return capabilities.intersection(Capabilities(rawValue: told))
    }
}
