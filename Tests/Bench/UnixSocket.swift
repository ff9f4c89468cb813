import CLinux
import Glibc

/// Stream sockets by path, non-blocking.
enum UnixSocket {
    /// Connects to `path`. Waits for a server that is starting (no socket yet, or nobody listening).
    static func connect(_ path: String, within seconds: Double = 10) throws -> Int32 {
        let deadline = MonotonicClock.now() + UInt64(seconds * 1e9)
        while true {
            let descriptor = try create(SOCK_STREAM)
            let result = try withAddress(path) { Glibc.connect(descriptor, $0, $1) }
            if result == 0 {
                _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
                return descriptor
            }
            let failure = BenchError.system("connect \(path)")
            let mayBeStarting = errno == ENOENT || errno == ECONNREFUSED
            close(descriptor)
            guard mayBeStarting, MonotonicClock.now() < deadline else { throw failure }
            usleep(1000)
        }
    }

    static func listen(_ path: String) throws -> Int32 {
        let descriptor = try bind(path, SOCK_STREAM)
        guard Glibc.listen(descriptor, 1024) == 0 else { throw BenchError.system("listen \(path)") }
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        return descriptor
    }

    static func bind(_ path: String, _ type: __socket_type) throws -> Int32 {
        let descriptor = try create(type)
        guard try withAddress(path, { Glibc.bind(descriptor, $0, $1) }) == 0 else {
            throw BenchError.system("bind \(path)")
        }
        return descriptor
    }

    private static func create(_ type: __socket_type) throws -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(type.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw BenchError.system("socket") }
        return descriptor
    }

    private static func withAddress(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw BenchError("\(path): too long for a Unix socket")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
