import CRUDPluginKit
import Glibc

/// A file that occupies room on the disk beside the database, so that records can be deleted when the disk is full.
///
/// What deletes has to write as well: to the write-ahead log, and to the memory that processes share. On a full disk it
/// could not, and nothing would ever free a page again. So the file is removed then, and its room is the log's, which
/// uses it again and again, while the database file may not grow any more (``allowsGrowth``). The file is made again
/// when the disk has room for it and for half as much again: without that half it would come and go with each deletion.
final class Reserve {
    private let path: String
    private let database: String
    private let bytes: Int
    private let host: Host
    /// Whether the file is there, whole.
    private var isKept = false
    /// Whether the administrator knows that it is not.
    private var hasReported = false

    /// How much is allocated at once: this runs between two writes.
    private static let stepBytes = 16 << 20

    /// - Parameters:
    ///   - database: the path of the database file.
    ///   - bytes: 0: there is to be no reserve.
    init(beside database: String, bytes: Int, host: Host) {
        path = "\(database)-reserve"
        self.database = database
        self.bytes = bytes
        self.host = host
    }

    /// Whether the database file may grow.
    var allowsGrowth: Bool { bytes == 0 || isKept }

    /// Makes the file if there is room for it; to be called once the database is locked.
    ///
    /// - Throws: `unavailable` where something else is in its place, or the system refuses it.
    func open() throws(StorageFailure) {
        guard bytes > 0 else {
            unlink(path)
            return
        }
        do throws(StorageFailure) {
            while !isKept {
                guard try advance() else { break }
            }
        } catch let error where error.status == .noSpace {
            // Reported below.
        } catch {
            throw StorageFailure(.unavailable, error.message)
        }
        isKept ? reportRestoration() : reportRelease("there is no room for \(path)")
    }

    /// Gives its room to the disk.
    ///
    /// - Returns: false if there was nothing to give.
    func release() -> Bool {
        guard unlink(path) == 0 || isKept else { return false }
        isKept = false
        reportRelease("the disk is full, and \(path) has been removed")
        return true
    }

    /// Makes the file again, or a step of it, if the disk has enough room.
    ///
    /// - Returns: whether the file is there, whole.
    func restore() -> Bool {
        guard !allowsGrowth else { return true }
        // An error of the disk is one of the next write as well.
        guard (try? advance()) == true, isKept else { return isKept }
        reportRestoration()
        return true
    }

    // MARK: The file

    /// Allocates a further step; false if there is not enough room.
    private func advance() throws(StorageFailure) -> Bool {
        let flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
        var descriptor = Glibc.open(path, flags)
        if descriptor < 0, errno == ENOENT {
            // As long as the disk is full it is not made in vain.
            guard hasRoom(for: bytes) else { return false }
            descriptor = Glibc.open(path, flags | O_CREAT, 0o600)
        }
        guard descriptor >= 0 else { throw StorageFailure("cannot make \(path)") }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw StorageFailure("cannot examine \(path)") }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw StorageFailure(.unavailable, "\(path) is not a regular file")
        }
        // The umask can only have taken bits away.
        fchmod(descriptor, 0o600)
        let size = min(Int(status.st_size), bytes)
        if status.st_size > size { ftruncate(descriptor, size) }
        if size < bytes {
            let length = min(bytes - size, Self.stepBytes)
            guard hasRoom(for: bytes - size), posix_fallocate(descriptor, size, length) == 0 else {
                unlink(path)
                return false
            }
        }
        isKept = min(size + Self.stepBytes, bytes) == bytes
        return true
    }

    private func hasRoom(for missing: Int) -> Bool {
        var status = statvfs()
        guard statvfs(database, &status) == 0 else { return false }
        let free = Int(clamping: status.f_bavail).multipliedReportingOverflow(by: Int(clamping: status.f_frsize))
        return free.overflow || free.partialValue >= missing + bytes / 2
    }

    private func reportRestoration() {
        guard hasReported else { return }
        hasReported = false
        host.log(.info, "\(path) is there again: records can be stored")
        host.state(.up, "")
    }

    private func reportRelease(_ reason: String) {
        if hasReported { return }
        hasReported = true
        let needed = (bytes + bytes / 2) >> 10
        let text =
            "\(reason): records can be deleted, and stored in the room that they leave, until \(needed) KiB are free"
        host.log(.warning, text)
        host.state(.up, text)
    }
}
