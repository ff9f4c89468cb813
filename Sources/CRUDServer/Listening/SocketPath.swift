import CLinux
import CRUDConfiguration
import CRUDStorage
import Glibc

/// The path at which the daemon listens, locked by a file beside it.
///
/// Only the holder of the lock replaces a socket that a dead daemon has left. systemd's sockets have no lock, so a
/// connection is tried too: a socket at which anybody listens is never replaced.
final class SocketPath {
    private let path: String
    private let lock: LockFile

    /// Which setting cannot be used, and why.
    enum Failure: Error {
        case path(SystemError)
        case group(SystemError)
    }

    /// Takes the lock.
    ///
    /// - Throws: ``Failure`` if others can write the directory, or another daemon holds the lock.
    init(_ path: String) throws(Failure) {
        self.path = path
        do throws(SystemError) {
            try Self.checkDirectory(of: path)
            lock = try LockFile(of: path, usage: "listens at \(path)")
        } catch {
            throw .path(error)
        }
    }

    /// Binds a socket at the path and listens.
    ///
    /// It is bound under umask 0177, and group and mode are set before it listens, so that nobody else can connect.
    ///
    /// - Throws: ``Failure``, also where something that is not a socket is at the path, or somebody listens there.
    func listen(_ socket: Configuration.Socket) throws(Failure) -> CInt {
        let descriptor: CInt
        do throws(SystemError) {
            try removeStale()
            descriptor = try Self.makeSocket()
        } catch {
            throw .path(error)
        }
        do throws(SystemError) {
            try bind(descriptor)
        } catch {
            close(descriptor)
            throw .path(error)
        }
        if let group = socket.group, chown(path, uid_t.max, group.id) != 0 {
            let error = SystemError("cannot give \(path) to group \(group.name)")
            close(descriptor)
            throw .group(error)
        }
        do throws(SystemError) {
            guard chmod(path, mode_t(socket.mode)) == 0 else { throw SystemError("cannot set the mode of \(path)") }
            guard Glibc.listen(descriptor, Self.backlog) == 0 else { throw SystemError("cannot listen at \(path)") }
        } catch {
            close(descriptor)
            throw .path(error)
        }
        return descriptor
    }

    private func bind(_ descriptor: CInt) throws(SystemError) {
        let mask = umask(0o177)
        let bound = withAddress { Glibc.bind(descriptor, $0, $1) }
        let code = errno
        umask(mask)
        guard bound == 0 else { throw SystemError("cannot bind \(path)", code: code) }
    }

    /// Removes the socket, on a clean stop.
    func remove() {
        unlink(path)
    }

    private static let backlog: CInt = 1024

    private static func checkDirectory(of path: String) throws(SystemError) {
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex
        let directory = slash == path.startIndex ? "/" : String(path[..<slash])
        var status = stat()
        guard stat(directory, &status) == 0 else { throw SystemError("cannot examine \(directory)") }
        let isOpenToOthers = status.st_mode & (S_IWGRP | S_IWOTH) != 0 && status.st_mode & S_ISVTX == 0
        // Its owner can rename what is there, sticky or not.
        let isOwnedByOthers = status.st_uid != 0 && status.st_uid != geteuid()
        if isOwnedByOthers {
            var names = UserNames()
            let name = names.name(of: status.st_uid)
            let owner = name.isEmpty ? "user \(status.st_uid)" : name
            throw SystemError(
                message: "\(directory) belongs to \(owner), who could replace the socket there: start the daemon as "
                    + "\(owner), or put the socket elsewhere", code: EPERM)
        }
        if isOpenToOthers {
            throw SystemError(
                message: "others can write \(directory), and replace the socket there", code: EPERM)
        }
    }

    private func removeStale() throws(SystemError) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT { return }
            throw SystemError("cannot examine \(path)")
        }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw SystemError(message: "\(path) is not a socket", code: EEXIST)
        }
        guard try !isListenedAt() else { throw SystemError(message: "somebody listens at \(path)", code: EADDRINUSE) }
        guard unlink(path) == 0 else { throw SystemError("cannot remove the stale socket \(path)") }
    }

    private func isListenedAt() throws(SystemError) -> Bool {
        let descriptor = try Self.makeSocket()
        defer { close(descriptor) }
        // A full queue has a listener too.
        return withAddress { connect(descriptor, $0, $1) } == 0 || errno == EAGAIN
    }

    private static func makeSocket() throws(SystemError) -> CInt {
        let descriptor = Glibc.socket(
            AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw SystemError("cannot make a socket") }
        return descriptor
    }

    private func withAddress(_ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt) -> CInt {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // The configuration has checked that the path and its terminator fit.
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
