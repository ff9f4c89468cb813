import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import PluginTestSupport

/// A directory for a log of the plugin, and copies of it: what a process that is killed at the moment leaves behind.
final class LogImages {
    let parent: TemporaryDirectory
    let plugin: ExportedPlugin
    private var count = 0

    init() throws {
        parent = try TemporaryDirectory()
        plugin = try ExportedPlugin("memory")
    }

    var path: String { "\(parent.path)/log" }

    func open(_ path: String? = nil, more: String = "", expected: UInt64 = 0) throws(CallError) -> PluginBackend {
        try PluginBackend(
            plugin, options: #"{"log": "\#(path ?? self.path)"\#(more)}"#, expectedStorage: expected)
    }

    /// Copies the segments; returns the path of the copy.
    func copy(of path: String? = nil) throws -> String {
        count += 1
        let copy = "\(parent.path)/copy-\(count)"
        try Files.makeDirectory(copy, mode: 0o700)
        for name in try segments(path) {
            try Files.copy("\(path ?? self.path)/\(name)", to: "\(copy)/\(name)", mode: 0o600)
        }
        return copy
    }

    func segments(_ path: String? = nil) throws -> [String] {
        try Files.names(in: path ?? self.path).filter { $0.hasPrefix("segment-") }.sorted()
    }

    var totalBytes: Int {
        get throws { try segments().reduce(0) { $0 + Int(Files.status("\(path)/\($1)")?.st_size ?? 0) } }
    }
}
