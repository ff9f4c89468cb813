import CRUDPluginHost
import CRUDPluginTesting
import Glibc

/// A plugin that is tried where it lies, which need not be a configured directory; it must be trustworthy all the same.
struct PluginAtPath {
    /// Links resolved.
    let path: String
    let isChild: Bool

    private var directory: String {
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    init(_ path: String, isChild: Bool) throws(PluginFault) {
        guard let resolved = realpath(path, nil) else {
            throw PluginFault("\(path): \(String(cString: strerror(errno)))")
        }
        defer { free(resolved) }
        self.path = String(cString: resolved)
        self.isChild = isChild
    }

    /// Loads the plugin into this process.
    func load() throws(PluginFault) -> Plugin {
        try Plugin.load(PluginFile(named: path, in: [directory], sha256: nil))
    }

    /// Loads the plugin, or asks a child of it what it can do.
    ///
    /// - Parameter options: a JSON object.
    func start(options: String) throws -> ExportedPlugin {
        guard isChild else { return ExportedPlugin(try load().table) }
        let program: ChildCommand.Program =
            path.hasSuffix(".so") ? .plugin(path, directories: [directory]) : .executable([path])
        let command = ChildCommand(
            backend: "check", program: program, sha256: nil, limits: ChildCommand.Limits(),
            home: getenv("HOME").map { String(cString: $0) } ?? "/", launcher: try ChildCommand.findLauncher())
        return try ExportedPlugin(command, options: options)
    }
}
