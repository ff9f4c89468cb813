import CRUDPluginABI
import Glibc

/// Copies of the storage.
enum BackupChecks {
    /// A copy is storage of its own with the records of one moment, and nothing is written beside it.
    static func copies(_ context: CheckContext) throws {
        guard let storage = PluginChecks.absolutePaths(in: context.options).first else {
            throw NotApplicable(text: "the options have no path")
        }
        let backend = try context.open()
        let directory = try TemporaryDirectory()
        let copy = "\(directory.path)/copy"
        close(open(copy, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600))
        let collection = try context.collection("backups", of: backend)
        let model = try RecordModel(ids: RecordModel.ids, collection, context)
        var later = 0
        do throws(CallError) {
            try backend.backUp(to: copy) { () throws(CallError) in
                later += 1
                _ = try backend.write([.put("later \(later)", bytes: context.item(later), in: collection)])
            }
        } catch {
            if error.status == Int(CRUDD_UNSUPPORTED) { throw NotApplicable(text: "the plugin makes no backups") }
            throw error
        }
        context.expect(directory.names, is: ["copy"], "files beside the copy")
        let restored = try PluginBackend(
            context.plugin, options: context.options.replacing("\"\(storage)\"", with: "\"\(copy)\""),
            expectedStorage: backend.identity)
        context.expect(restored.identity, is: backend.identity, "the identity of the copy")
        let records = try restored.reader().scan(try context.collection("backups", of: restored))
        context.expect(records, is: model.scan(PluginRange()), "the records of the copy")
    }
}

/// A new directory, which is removed with what is in it.
private struct TemporaryDirectory: ~Copyable {
    let path: String

    init() throws(CallError) {
        var template = Array("/tmp/crudd-check-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw .violation("no directory can be made in /tmp") }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit {
        for name in names { unlink("\(path)/\(name)") }
        rmdir(path)
    }

    var names: [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}
