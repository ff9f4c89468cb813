import CRUDPluginKit
import Glibc

/// A directory of directories of files: a file for each record.
final class FileSystemBackend: StorageBackend {
    static let name = "filesystem"
    static let version = "1.0.0"
    static let capabilities: Capabilities = [.readsConcurrently, .durable, .expiry]
    static let storageOption: FileSystemOptions.Key? = .directory
    static let backupAdvice: String? = "copy its directory with tar --xattrs"

    private let options: FileSystemOptions
    private let host: Host
    private let foreignFiles: ForeignFiles
    private let root: Root
    private let sequences: ReservedSequences
    let identity: UInt64
    private let writer: FileSystemWriter
    /// Open collections by name and then format, as bytes: the host tells texts apart that Swift takes for equal.
    private var collections: [[UInt8]: [FileName.Format: FileSystemCollection]] = [:]

    init(options: FileSystemOptions, host: Host, call: CallContext) throws(StorageFailure) {
        self.options = options
        self.host = host
        foreignFiles = ForeignFiles(host: host)
        root = try Root(path: options.directory, syncs: options.syncs, host: host, foreignFiles)
        sequences = try ReservedSequences(in: root.directory, foreignFiles)
        identity = try DirectoryIdentity.of(root.directory, host, foreignFiles)
        writer = FileSystemWriter(
            root: root, sequences: sequences, syncs: options.syncs, host: host, foreignFiles: foreignFiles)
        try removeTemporaryFiles(call)
    }

    static func capabilities(with options: FileSystemOptions) -> Capabilities {
        options.syncs ? capabilities : capabilities.subtracting(.durable)
    }

    var capabilities: Capabilities { Self.capabilities(with: options) }

    var lastSequence: UInt64 { sequences.ceiling }

    /// The lock ends with the last reference to the root.
    func close() {}

    /// Removes what a crash has left behind, and reports what is not ours.
    private func removeTemporaryFiles(_ call: CallContext) throws(StorageFailure) {
        try root.removeTemporaryFiles()
        var heartbeat = Heartbeat(call, host)
        try root.scanCollections(foreignFiles) { (directory, _) throws(StorageFailure) in
            try directory.scan { (entry) throws(StorageFailure) in
                try heartbeat.step()
                switch (FileName(entry.name), entry.kind) {
                case (.record, S_IFREG): break
                // Where it is in the place of a record's file, reading reports it.
                case (.record(_, .name), S_IFDIR): break
                case (.temporary, S_IFREG): try directory.removeFile(entry.text)
                default: foreignFiles.report(entry.name, in: directory)
                }
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

    func dropCollection(named name: UnsafeRawBufferPointer, _ call: CallContext) throws(StorageFailure) {
        try root.checkSyncs()
        for collection in collections.removeValue(forKey: Array(name)) ?? [:] { writer.forget(collection.value) }
        guard let directory = try root.directory.directory(EncodedName(name.bytes).text) else {
            throw StorageFailure(.notFound, "there is no collection \(String(decoding: name, as: UTF8.self))")
        }
        do {
            try removeRecords(of: directory, call)
        } catch {
            throw StorageFailure(.outcomeUnknown, error.message)
        }
        if unlinkat(root.directory.descriptor, EncodedName(name.bytes).text, AT_REMOVEDIR) != 0 {
            // What is not ours keeps its directory, which shows as a collection without records.
            host.log(.warning, StorageFailure("cannot remove \(directory.path)").message)
        }
        do {
            if options.syncs { try root.sync(root.directory) }
        } catch {
            throw StorageFailure(.outcomeUnknown, error.message)
        }
    }

    private func removeRecords(of directory: Directory, _ call: CallContext) throws(StorageFailure) {
        var heartbeat = Heartbeat(call, host)
        // A directory that is changed during a scan may hide names from it, hence scans until one finds nothing.
        var hasRemoved = true
        while hasRemoved {
            hasRemoved = false
            try directory.scan { (entry) throws(StorageFailure) in
                heartbeat.advance()
                switch (FileName(entry.name), entry.kind) {
                case (.record, S_IFREG), (.temporary, S_IFREG):
                    if try directory.removeFile(entry.text) { hasRemoved = true }
                case (.record(_, .name), S_IFDIR):
                    // One that is not empty stays, as what is not ours does.
                    if try removesDirectory(entry.text, in: directory) { hasRemoved = true }
                default: break
                }
            }
        }
        if options.syncs { try root.sync(directory) }
    }

    /// Removes a directory in the place of a record's file, and returns whether it was empty.
    private func removesDirectory(_ name: String, in directory: Directory) throws(StorageFailure) -> Bool {
        do {
            return try directory.removeFile(name)
        } catch let error where error.status == .corrupt {
            foreignFiles.report(error)
            return false
        }
    }

    func listCollections(_ call: CallContext, _ emit: (RawSpan) -> Void) throws(StorageFailure) {
        try root.scanCollections(foreignFiles) { (_, name) throws(StorageFailure) in emit(name.span.bytes) }
    }

    // MARK: Records

    func openReader() throws(StorageFailure) -> FileSystemReader {
        FileSystemReader(root: root, host: host, foreignFiles: foreignFiles)
    }

    func write(_ batch: borrowing WriteBatch<FileSystemCollection>) throws(StorageFailure) {
        writer.write(batch)
    }

    func removeExpired(_ request: borrowing ExpiryRequest<FileSystemCollection>) throws(StorageFailure) -> Int64? {
        try writer.removeExpired(request)
    }
}
