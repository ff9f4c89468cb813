import CRUDPluginKit
import Glibc

/// The sequence numbers that may have been used: those up to a ceiling, which is in a file of DIRECTORY.
///
/// The ceiling rises by blocks, each durable before the first number of the block is used. So no number is used twice,
/// whatever is deleted, killed or lost, for the price of one small file per 2^20 mutations; a restart leaves the rest
/// of its block unused. Where the disk has no room for another file the number is written over.
final class ReservedSequences {
    static let fileName = ".sequence"

    private let directory: Directory
    private(set) var ceiling: UInt64

    init(in directory: Directory, _ foreignFiles: ForeignFiles) throws(StorageFailure) {
        self.directory = directory
        ceiling = 0
        let item: [UInt8]
        do {
            guard let file = try RecordFile.open(Self.fileName, in: directory, foreignFiles) else { return }
            item = try file.item()
        } catch let error where error.status == .corrupt {
            throw StorageFailure(.unavailable, error.message)
        }
        let text = String(decoding: item, as: UTF8.self)
        guard let number = UInt64(text.prefix { $0 != "\n" }) else {
            throw StorageFailure(
                .unavailable,
                "\(directory.path)/\(Self.fileName) must be a number, above the sequence number of every record")
        }
        ceiling = number
    }

    /// Returns once a number counts as used, whatever happens.
    func reserve(_ sequence: UInt64) throws(StorageFailure) {
        guard sequence > ceiling else { return }
        let raised = SequenceBlock.last(of: sequence)
        do throws(StorageFailure) {
            let file = try NewFile(in: directory, mode: 0o600)
            try file.write("\(raised)\n".utf8.span.bytes)
            try file.sync()
            try file.rename(to: Self.fileName)
            try directory.sync()
        } catch let error where error.status == .noSpace && ceiling > 0 {
            try overwrite(with: raised)
        }
        ceiling = raised
    }

    /// Writes the ceiling over the old one: a full disk has no room for another file, and a record may be about to be
    /// removed. A disk writes so few bytes whole or not at all, and the old ones were no more.
    private func overwrite(with raised: UInt64) throws(StorageFailure) {
        let path = "\(directory.path)/\(Self.fileName)"
        let descriptor = openat(directory.descriptor, Self.fileName, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw StorageFailure("cannot open \(path)") }
        defer { close(descriptor) }
        let text = Array("\(raised)\n".utf8)
        guard pwrite(descriptor, text, text.count, 0) == text.count else {
            throw StorageFailure("cannot write \(path)")
        }
        guard fsync(descriptor) == 0 else { throw StorageFailure("cannot sync \(path)") }
    }
}
