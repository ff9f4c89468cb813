import Synchronization

/// An open collection: the directory that holds it and what its files are.
final class FileSystemCollection: Sendable {
    let name: [UInt8]
    let directoryName: EncodedName
    let format: FileName.Format
    private let synced = Atomic(false)

    init(name: [UInt8], format: FileName.Format) {
        self.name = name
        directoryName = EncodedName(name.span.bytes)
        self.format = format
    }

    /// Whether the directory's name has been synced since the backend was opened.
    var isSynced: Bool {
        get { synced.load(ordering: .relaxed) }
        set { synced.store(newValue, ordering: .relaxed) }
    }
}
