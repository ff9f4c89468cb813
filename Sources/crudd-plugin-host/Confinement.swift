import CLinux
import Glibc

/// What a child is held to.
enum Confinement {
    /// From which length on memory is a mapping of its own, which the system gets back at once. The C library would
    /// raise it with each long item that is freed, and keep the memory of later ones, in pieces, for each thread.
    private static let mappedBytes: CInt = 256 << 10

    /// Sets the limits of this process, and leaves the daemon's working directory.
    static func apply(memoryBytes: rlim_t) {
        mallopt(M_MMAP_THRESHOLD, mappedBytes)
        limit(RLIMIT_DATA, to: memoryBytes)
        // A core file would hold records.
        limit(RLIMIT_CORE, to: 0)
        guard chdir("/") == 0 else { fail("chdir: \(reason())") }
    }

    private static func limit(_ resource: __rlimit_resource, to value: rlim_t) {
        var limit = rlimit(rlim_cur: value, rlim_max: value)
        var current = rlimit()
        // A limit that is lower already stays.
        if getrlimit(__rlimit_resource_t(resource.rawValue), &current) == 0 {
            limit.rlim_max = min(value, current.rlim_max)
            limit.rlim_cur = min(value, current.rlim_max)
        }
        guard setrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0 else { fail("setrlimit: \(reason())") }
    }

    private static func reason() -> String { String(cString: strerror(errno)) }
}
