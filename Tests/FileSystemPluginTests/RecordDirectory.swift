import CLinux
import CRUDPluginTesting
import CRUDTestSupport
import Glibc
import PluginTestSupport

/// A directory for the plugin `filesystem`, and what can be seen in it from outside.
struct RecordDirectory {
    let path: String
    private let parent: TemporaryDirectory
    private let plugin: ExportedPlugin

    init() throws {
        parent = try TemporaryDirectory()
        path = "\(parent.path)/files"
        plugin = try ExportedPlugin("filesystem")
    }

    func open(fsync: Bool = true) throws(CallError) -> PluginBackend {
        try PluginBackend(plugin, options: #"{"directory": "\#(path)", "fsync": \#(fsync)}"#)
    }

    func names(in collection: String? = nil) throws -> [String] {
        try Files.names(in: collection.map { "\(path)/\($0)" } ?? path).sorted()
    }

    func read(_ file: String) throws -> String {
        String(decoding: try Files.read("\(path)/\(file)"), as: UTF8.self)
    }

    func write(_ text: String, to file: String) throws {
        try Files.write(text, to: "\(path)/\(file)")
    }

    func attribute(_ name: String, of file: String) -> String? {
        var value = [UInt8](repeating: 0, count: 1024)
        let size = getxattr("\(path)/\(file)", name, &value, value.count)
        return size < 0 ? nil : String(decoding: value.prefix(size), as: UTF8.self)
    }

    func setAttribute(_ name: String, to value: String, of file: String) throws {
        guard setxattr("\(path)/\(file)", name, value, value.utf8.count, 0) == 0 else {
            throw Failure.system("setxattr \(file)")
        }
    }
}
