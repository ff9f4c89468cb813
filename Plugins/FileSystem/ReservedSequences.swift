import CRUDPluginKit

/// The sequence numbers that may have been used: those up to a ceiling, which is in a file of DIRECTORY.
///
/// The ceiling rises by blocks, each durable before the first number of the block is used. So no number is used twice,
/// whatever is deleted, killed or lost, for the price of one small file per 2^20 mutations; a restart leaves the rest
/// of its block unused.
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
        let file = try NewFile(in: directory, mode: 0o600)
        try file.write("\(raised)\n".utf8.span.bytes)
        try file.sync()
        try file.rename(to: Self.fileName)
        try directory.sync()
        ceiling = raised
    }
}
