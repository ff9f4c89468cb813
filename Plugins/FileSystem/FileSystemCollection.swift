/// An open collection: the directory that holds it and what its files are.
final class FileSystemCollection: Sendable {
    let name: [UInt8]
    let directoryName: EncodedName
    let format: FileName.Format

    init(name: [UInt8], format: FileName.Format) {
        self.name = name
        directoryName = EncodedName(name)
        self.format = format
    }
}
