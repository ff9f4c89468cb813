import CRUDPluginTesting
import PluginTestSupport

extension PluginBackend {
    /// Opens a SQLite database.
    ///
    /// - Parameters:
    ///   - mmap: nil: not given.
    ///   - surplus: by how many bytes the structs are longer than this package knows them.
    convenience init(path: String, synchronous: String = "full", mmap: Bool? = nil, surplus: Int = 0) throws {
        let mmap = mmap.map { #", "mmap": \#($0)"# } ?? ""
        try self.init(
            ExportedPlugin("sqlite"), options: #"{"path": "\#(path)", "synchronous": "\#(synchronous)"\#(mmap)}"#,
            surplus: surplus)
    }
}

extension PluginReader {
    /// The ids that a scan emits.
    func ids(
        _ collection: PluginCollection, _ range: PluginRange = PluginRange(), isReversed: Bool = false,
        afterKey: String = "", after: String = "", limit: Int = 0
    ) throws(CallError) -> [String] {
        try scan(
            collection, range, isReversed: isReversed, afterKey: Array(afterKey.utf8), after: after, limit: limit
        ).map(\.id)
    }
}

/// What a call fails with; nil if it does not.
func failure<Result>(of call: () throws -> Result) throws -> CallError? {
    do {
        _ = try call()
        return nil
    } catch let error as CallError {
        return error
    }
}
