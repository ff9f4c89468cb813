import CRUDModel
import CRUDPluginKit
import Glibc

/// A directory of directories of files: a file for each record.
final class FileSystemBackend: StorageBackend {
    static let name = "filesystem"
    static let version = "1.0.0"
    static let capabilities: Capabilities = [.readsConcurrently, .durable]

    private let options: FileSystemOptions
    private let host: Host
    private let foreignFiles: ForeignFiles
    private let root: Root
    private let writer: FileSystemWriter
    /// Open collections by name and then format, as bytes: Swift takes texts for equal that the host tells apart.
    private var collections: [[UInt8]: [FileName.Format: FileSystemCollection]] = [:]

    init(options: FileSystemOptions, host: Host) throws(StorageFailure) {
        self.options = options
        self.host = host
        foreignFiles = ForeignFiles(host: host)
        root = try Root(path: options.directory, syncs: options.syncs)
        writer = FileSystemWriter(root: root, syncs: options.syncs, host: host, foreignFiles: foreignFiles)
        try tidy()
    }

    var capabilities: Capabilities {
        options.syncs ? Self.capabilities : Self.capabilities.subtracting(.durable)
    }

    /// The lock ends with the last reference to the root.
    func close() {}

    /// Removes what a crash has left behind, and reports what is not ours.
    private func tidy() throws(StorageFailure) {
        try root.walk(foreignFiles) { (directory, _) throws(StorageFailure) in
            try directory.walk { (entry) throws(StorageFailure) in
                switch (FileName(entry.name), entry.kind) {
                case (.record, S_IFREG): break
                case (.temporary, S_IFREG): try directory.removeFile(entry.text)
                default: foreignFiles.report(entry.name, in: directory)
                }
                return true
            }
        }
    }

    // MARK: Collections

    func openCollection(
        _ specification: borrowing CollectionSpecification
    ) throws(StorageFailure) -> FileSystemCollection {
        let name = Array(specification.name)
        let formatName = String(decoding: specification.format, as: UTF8.self)
        guard let format = FileName.Format(rawValue: formatName) else {
            throw StorageFailure(.unsupported, "unknown format \(formatName)")
        }
        let collection = collections[name]?[format] ?? FileSystemCollection(name: name, format: format)
        if specification.creates {
            _ = try root.makeDirectory(of: collection)
        } else if try root.directory(of: collection) == nil {
            throw StorageFailure(.notFound, "there is no collection \(String(decoding: name, as: UTF8.self))")
        }
        collections[name, default: [:]][format] = collection
        return collection
    }

    func dropCollection(named name: UnsafeRawBufferPointer) throws(StorageFailure) {
        collections[Array(name)] = nil
        guard let directory = try root.directory.directory(EncodedName(name).text) else {
            throw StorageFailure(.notFound, "there is no collection \(String(decoding: name, as: UTF8.self))")
        }
        do {
            try removeRecords(of: directory)
        } catch {
            throw StorageFailure(.outcomeUnknown, error.message)
        }
        if unlinkat(root.directory.descriptor, EncodedName(name).text, AT_REMOVEDIR) != 0 {
            // What is not ours keeps its directory, which shows as a collection without records.
            host.log(.warning, StorageFailure("cannot remove \(directory.path)").message)
        }
        do {
            if options.syncs { try root.directory.sync() }
        } catch {
            throw StorageFailure(.outcomeUnknown, error.message)
        }
    }

    private func removeRecords(of directory: Directory) throws(StorageFailure) {
        // A directory that is changed during a walk may hide names from it, hence walks until one finds nothing.
        var hasRemoved = true
        while hasRemoved {
            hasRemoved = false
            try directory.walk { (entry) throws(StorageFailure) in
                if case .foreign = FileName(entry.name) { return true }
                if entry.kind == S_IFREG, try directory.removeFile(entry.text) { hasRemoved = true }
                return true
            }
        }
        if options.syncs { try directory.sync() }
    }

    func listCollections(_ emit: (RawSpan) -> Void) throws(StorageFailure) {
        try root.walk(foreignFiles) { (_, name) throws(StorageFailure) in emit(name.span.bytes) }
    }

    // MARK: Records

    func openReader() throws(StorageFailure) -> FileSystemReader {
        FileSystemReader(root: root, foreignFiles: foreignFiles)
    }

    func write(_ batch: borrowing WriteBatch<FileSystemCollection>) throws(StorageFailure) {
        guard !batch.isAtomic else {
            throw StorageFailure(.unsupported, "files have no transactions")
        }
        writer.write(batch)
    }
}
