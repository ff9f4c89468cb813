import CLinux
import CRUDStorage
import Glibc

/// The file of a catalog, `collections.jsonl` in the state directory: its lines are records (``CatalogLine``), which
/// are applied in order.
///
/// **A record is in the file or it is not.** A short record is appended and synced; a long one, and every one while
/// most of the file is history, replaces the file: `.new` is written and synced, renamed, and the directory is synced.
/// A line without an end was never acknowledged; it is ignored, and gone with the next record. To read a file changes
/// nothing, so that a start that is refused leaves what it has found.
///
/// **In doubt** is a record that may be in the file although the sync after it has failed. The file is replaced at once
/// by one without it. If that fails too, nobody knows what the next start will find: no further record is accepted
/// until the file has been replaced.
///
/// **On a full disk** collections can be dropped. Some room behind the end of the file is allocated for that; records
/// of new collections may use half of it. A file that cannot be replaced by a shorter one is appended to.
///
/// Used by one thread at a time.
final class CatalogFile {
    private let directory: String
    private let calls: FileCalls
    /// Below 0 until there is a file.
    private var descriptor: CInt
    private var size: Int
    /// Whether the next record has to replace the file.
    private var mustReplace: Bool
    /// How many bytes of it are not history; nil: it has not mattered yet.
    private var currentBytes: Int?
    /// How many bytes of it are known to be allocated.
    private var allocatedBytes = 0

    /// The longest line that is appended.
    private static let maximumAppendedBytes = 4096
    /// The size from which on a file is replaced when more than half of it is history.
    private static let minimumCompactedBytes = 64 << 10
    /// How much is allocated behind its end: some hundred records.
    private static let reservedBytes = 64 << 10

    static func path(in directory: String) -> String { directory + "/collections.jsonl" }

    private var path: String { Self.path(in: directory) }
    private var newPath: String { path + ".new" }

    /// Opens the file in a directory, which need not be there, and changes nothing.
    ///
    /// - Returns: what it says.
    /// - Throws: `SystemError` or ``CatalogDamage``.
    static func open(in directory: String, _ calls: FileCalls) throws -> (CatalogFile, CatalogContents) {
        let path = path(in: directory)
        let descriptor = calls.open(path, O_RDWR | O_APPEND | O_NOFOLLOW)
        guard descriptor >= 0 || errno == ENOENT else { throw SystemError("cannot open \(path)") }
        let file = CatalogFile(directory, calls, descriptor)
        guard descriptor >= 0 else { return (file, CatalogContents()) }
        let text = try file.text()
        let history = try CatalogHistory(text, path: path)
        file.size = text.count
        file.mustReplace = !history.isCurrent
        file.currentBytes = nil
        return (file, history.contents)
    }

    private init(_ directory: String, _ calls: FileCalls, _ descriptor: CInt) {
        self.directory = directory
        self.calls = calls
        self.descriptor = descriptor
        size = 0
        mustReplace = true
        currentBytes = CatalogLine.first.count
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    private func text() throws(SystemError) -> [UInt8] {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw SystemError("cannot read \(path)") }
        var text = [UInt8](repeating: 0, count: Int(status.st_size))
        var filled = 0
        while filled < text.count {
            let size = text.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress.map { $0 + filled }, $0.count - filled, off_t(filled))
            }
            if size < 0, errno == EINTR { continue }
            guard size > 0 else { throw SystemError("cannot read \(path)") }
            filled += size
        }
        return text
    }

    // MARK: Records

    /// Writes a record durably.
    ///
    /// - Parameters:
    ///   - former: what the record changes, as it is before.
    ///   - contents: everything as it is before, asked for where the file is replaced.
    func commit(
        _ record: CatalogRecord, insteadOf former: CatalogRecord, _ contents: () -> CatalogContents
    ) throws(CatalogError) {
        let line = CatalogLine.bytes(of: record)
        let total = size + line.count
        let isLarge = total > Self.minimumCompactedBytes
        if currentBytes == nil, isLarge { currentBytes = Self.bytes(of: contents()).count }
        let current = currentBytes.map { max(0, $0 + Self.entryBytes(of: record) - Self.entryBytes(of: former)) }
        let isMostlyHistory = isLarge && total > 2 * (current ?? 0)
        let mayAppend = !mustReplace && line.count <= Self.maximumAppendedBytes
        if !mayAppend || isMostlyHistory {
            let before = contents()
            var after = before
            after.apply(record)
            guard let failure = replace(with: after) else { return }
            // Where the disk is full the history stays.
            guard mayAppend, !failure.isInDoubt, failure.error.isFullDisk else { try undo(failure, before) }
        }
        guard keepRoom(for: line.count) || !record.adds(to: former) else {
            throw .failed(SystemError("cannot write \(path)", code: ENOSPC))
        }
        if let failure = append(line) { try undo(failure, contents()) }
        currentBytes = current
    }

    /// Allocates room behind the end of the file, once half of it is used.
    ///
    /// - Returns: false where less than half of it is left for others than a line of so many bytes, as the disk is
    ///   full. A file system that cannot allocate has no room to keep.
    private func keepRoom(for bytes: Int) -> Bool {
        let needed = size + bytes + Self.reservedBytes
        if allocatedBytes >= needed - Self.reservedBytes / 2 { return true }
        if calls.allocate(descriptor, needed) == 0 {
            allocatedBytes = needed
            return true
        }
        return errno != ENOSPC && errno != EDQUOT
    }

    /// Replaces a file whose last record is in doubt.
    func resolveDoubt(_ contents: CatalogContents) throws(SystemError) {
        if let failure = replace(with: contents) { throw failure.error }
    }

    /// A record has failed.
    private func undo(_ failure: Failure, _ contents: CatalogContents) throws(CatalogError) -> Never {
        guard failure.isInDoubt, replace(with: contents) != nil else { throw .failed(failure.error) }
        throw .inDoubt(failure.error)
    }

    private struct Failure {
        let error: SystemError
        /// Whether the record may be found at a start.
        var isInDoubt = false
    }

    private func append(_ line: [UInt8]) -> Failure? {
        let written = calls.write(descriptor, line)
        guard written == line.count else {
            if written >= 0 { errno = ENOSPC }
            let error = SystemError("cannot write \(path)")
            // Without its end the line says nothing; the next one must not stand behind it.
            if calls.truncate(descriptor, size) != 0 { mustReplace = true }
            allocatedBytes = 0
            return Failure(error: error)
        }
        guard calls.sync(descriptor) == 0 else {
            mustReplace = true
            return Failure(error: SystemError("cannot sync \(path)"), isInDoubt: true)
        }
        size += line.count
        return nil
    }

    private func replace(with contents: CatalogContents) -> Failure? {
        let bytes = Self.bytes(of: contents)
        let new = calls.open(newPath, O_RDWR | O_APPEND | O_CREAT | O_TRUNC | O_NOFOLLOW)
        guard new >= 0 else { return Failure(error: SystemError("cannot make \(newPath)")) }
        guard write(bytes, to: new), calls.sync(new) == 0, calls.rename(newPath, path) == 0 else {
            let error = SystemError("cannot write \(newPath)")
            close(new)
            unlink(newPath)
            return Failure(error: error)
        }
        if descriptor >= 0 { close(descriptor) }
        (descriptor, size, currentBytes) = (new, bytes.count, bytes.count)
        allocatedBytes = 0
        _ = keepRoom(for: 0)
        // Until the directory is durable a start may find either file.
        mustReplace = true
        guard calls.syncDirectory(directory) == 0 else {
            return Failure(error: SystemError("cannot sync \(directory)"), isInDoubt: true)
        }
        mustReplace = false
        return nil
    }

    private func write(_ bytes: [UInt8], to descriptor: CInt) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let written = calls.write(descriptor, rest)
            if written < 0, errno == EINTR { continue }
            if written == 0 { errno = ENOSPC }
            guard written > 0 else { return false }
            rest.removeFirst(written)
        }
        return true
    }

    // MARK: Sizes

    private static func bytes(of contents: CatalogContents) -> [UInt8] {
        var bytes = CatalogLine.first
        if !contents.storages.isEmpty {
            bytes += CatalogLine.bytes(of: CatalogRecord(storages: contents.storages))
        }
        for (name, placement) in contents.placements.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            bytes += CatalogLine.bytes(of: CatalogRecord(collections: [(name, placement)]))
        }
        return bytes
    }

    /// How much of a file the entries of a record are that are not history.
    private static func entryBytes(of record: CatalogRecord) -> Int {
        record.collections.reduce(0) { sum, entry in
            entry.placement.isNothing ? sum : sum + CatalogLine.bytes(of: CatalogRecord(collections: [entry])).count
        }
    }
}

extension CatalogRecord {
    /// Whether a collection gets a place that had none.
    ///
    /// - Parameter former: what the record changes, as it is before.
    fileprivate func adds(to former: CatalogRecord) -> Bool {
        zip(collections, former.collections).contains { $0.placement.authority != nil && $1.placement.authority == nil }
    }
}
