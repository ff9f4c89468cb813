import CRUDPluginKit

/// What tells DIRECTORY from others: a random number in a file of it, made with the directory, so that a copy has it
/// too.
enum DirectoryIdentity {
    static let fileName = ".identity"

    /// - Returns: 0 where it could not be made, as on a full disk: another opening makes it.
    static func of(_ directory: Directory, _ host: Host, _ foreignFiles: ForeignFiles) throws(StorageFailure) -> UInt64
    {
        if let number = try stored(in: directory, foreignFiles) { return number }
        do throws(StorageFailure) {
            return try make(in: directory)
        } catch {
            host.log(.warning, "cannot store what tells \(directory.path) from others: \(error.message)")
            return 0
        }
    }

    /// The number in the file; nil: there is none.
    static func stored(in directory: Directory, _ foreignFiles: ForeignFiles) throws(StorageFailure) -> UInt64? {
        do throws(StorageFailure) {
            guard let file = try RecordFile.open(fileName, in: directory, foreignFiles) else { return nil }
            let text = String(decoding: try file.item(), as: UTF8.self)
            guard let number = UInt64(text.prefix { $0 != "\n" }), number != 0 else {
                throw StorageFailure(
                    .unavailable,
                    "\(directory.path)/\(fileName) must be the number that tells this directory from others; "
                        + "restore it, or remove it for a new one")
            }
            return number
        } catch let error where error.status == .corrupt {
            throw StorageFailure(.unavailable, error.message)
        }
    }

    private static func make(in directory: Directory) throws(StorageFailure) -> UInt64 {
        let number = History.makeIdentity()
        let file = try NewFile(in: directory, mode: 0o600)
        try file.write("\(number)\n".utf8.span.bytes)
        try file.sync()
        try file.rename(to: fileName)
        try directory.sync()
        return number
    }
}
