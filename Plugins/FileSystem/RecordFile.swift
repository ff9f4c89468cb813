import CRUDPluginKit
import Glibc

/// The file of a record, open for reading.
struct RecordFile: ~Copyable {
    /// The largest item that a daemon can be configured to take. What is larger was put there by somebody else, and
    /// would take all memory.
    private static let maximumItemBytes = 512 << 20

    private let descriptor: Int32
    private let status: stat
    private let path: String

    private init(descriptor: Int32, status: stat, path: String) {
        self.descriptor = descriptor
        self.status = status
        self.path = path
    }

    deinit {
        close(descriptor)
    }

    /// The file with that name; nil if there is none. Links, FIFOs, sockets and devices are reported and count as none.
    ///
    /// - Throws: `corrupt` for a directory and a file that cannot be read.
    static func open(
        _ name: String, in directory: Directory, _ foreignFiles: ForeignFiles
    ) throws(StorageFailure) -> RecordFile? {
        // O_NONBLOCK: opening a FIFO would wait for its writer.
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
        let descriptor = openat(directory.descriptor, name, flags)
        guard descriptor >= 0 else {
            switch errno {
            case ENOENT: return nil
            case ELOOP, ENXIO, ENODEV:
                // A link; a socket; a device.
                foreignFiles.report(name.utf8, in: directory)
                return nil
            default: throw failure(errno, "cannot open \(directory.path)/\(name)")
            }
        }
        var status = stat()
        let isKnown = fstat(descriptor, &status) == 0
        guard isKnown, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            if isKnown, status.st_mode & S_IFMT == S_IFDIR { throw directory.isInPlace(ofFile: name) }
            if isKnown { foreignFiles.report(name.utf8, in: directory) }
            return nil
        }
        return RecordFile(descriptor: descriptor, status: status, path: "\(directory.path)/\(name)")
    }

    /// What concerns this file alone is `corrupt`, anything else what the system says.
    private static func failure(_ code: Int32, _ action: String) -> StorageFailure {
        var failure = StorageFailure(errno: code, action)
        if [EIO, EACCES, EPERM].contains(code) { failure.status = .corrupt }
        return failure
    }

    /// The file of the record with that id; nil if there is none.
    static func open(
        _ id: RawSpan, of collection: FileSystemCollection, in directory: Directory,
        _ foreignFiles: ForeignFiles
    ) throws(StorageFailure) -> RecordFile? {
        let encoded = EncodedName(id)
        let name = FileName.record(encoded, collection.format)
        guard let file = try open(name, in: directory, foreignFiles) else { return nil }
        // A scan could not tell whose it is, so that reading does not either.
        if encoded.isShortened, try file.id().map({ EncodedName($0.span.bytes).text }) != encoded.text {
            foreignFiles.report(name.utf8, in: directory)
            return nil
        }
        return file
    }

    /// The id, of a file whose name is shortened.
    func id() throws(StorageFailure) -> [UInt8]? {
        try Attribute.id.value(of: descriptor)
    }

    /// What there is of a record beside its item.
    struct Metadata {
        let revision: [UInt8]
        /// In milliseconds since 1970-01-01 UTC; 0: never.
        let expiresAt: Int64
        /// 0: the file was written by somebody else.
        let sequence: UInt64
    }

    /// What there is of a record whose file cannot be read.
    static let unreadable = Metadata(revision: Array("unreadable".utf8), expiresAt: 0, sequence: 0)

    /// What was stored with the item. The revision of what was written by hand is one that changes with the file.
    func metadata() throws(StorageFailure) -> Metadata {
        let expiresAt = try expiresAt()
        guard let revision = try Attribute.revision.value(of: descriptor),
            RecordRules.isValidRevision(revision.span.bytes), try isUnedited()
        else { return Metadata(revision: derivedRevision, expiresAt: expiresAt, sequence: 0) }
        let sequence: UInt64? = try Attribute.sequence.number(of: descriptor)
        return Metadata(revision: revision, expiresAt: expiresAt, sequence: sequence ?? 0)
    }

    func expiresAt() throws(StorageFailure) -> Int64 {
        try Attribute.expires.number(of: descriptor) ?? 0
    }

    /// Whether the content is still the one that the revision was stored with, as far as the file's times tell.
    private func isUnedited() throws(StorageFailure) -> Bool {
        try Attribute.modified.value(of: descriptor)?.elementsEqual(status.modified) ?? true
    }

    private var derivedRevision: [UInt8] {
        func hexadecimal(_ number: some BinaryInteger) -> String { String(number, radix: 16) }
        let changed = "\(hexadecimal(status.st_ctim.tv_sec)).\(hexadecimal(status.st_ctim.tv_nsec))"
        return Array("\(hexadecimal(status.st_ino))-\(changed)-\(hexadecimal(status.st_size))".utf8)
    }

    /// The content, as long as it was when the file was opened.
    ///
    /// The revision is from then as well. So if somebody edits the file meanwhile, the item may be newer than its
    /// revision, never older, and a conditional write that relies on them fails as it should.
    func item() throws(StorageFailure) -> [UInt8] {
        let size = Int(status.st_size)
        guard size <= Self.maximumItemBytes else {
            throw StorageFailure(.corrupt, "\(path) is larger than an item can be")
        }
        var code: Int32 = 0
        let item = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            while count < size {
                let remaining = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[count...])
                let received = read(descriptor, remaining.baseAddress, remaining.count)
                if received < 0, errno == EINTR { continue }
                if received < 0 { code = errno }
                if received <= 0 { return }
                count += received
            }
        }
        if code != 0 { throw Self.failure(code, "cannot read \(path)") }
        return item
    }
}

extension stat {
    /// The modification time, as ``Attribute/modified`` has it.
    var modified: String.UTF8View { "\(st_mtim.tv_sec).\(st_mtim.tv_nsec)".utf8 }
}
