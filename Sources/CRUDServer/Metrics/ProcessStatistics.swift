import CLinux
import Glibc

/// What the kernel tells of this process (proc_pid_stat(5), getrusage(2)), as Prometheus' client libraries name it.
struct ProcessStatistics {
    let cpuSeconds: Double
    let residentBytes: Int
    let virtualBytes: Int
    let openDescriptors: Int
    let maximumDescriptors: UInt64
    /// Since 1970-01-01 UTC.
    let startSeconds: Double

    init() {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        cpuSeconds = Self.seconds(usage.ru_utime) + Self.seconds(usage.ru_stime)
        let pages = Self.text(of: "/proc/self/statm").split(separator: " ").compactMap { Int($0) }
        let pageBytes = sysconf(CInt(_SC_PAGESIZE))
        virtualBytes = pages.count > 0 ? pages[0] * pageBytes : 0
        residentBytes = pages.count > 1 ? pages[1] * pageBytes : 0
        openDescriptors = Self.countDescriptors()
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        maximumDescriptors = UInt64(limit.rlim_cur)
        startSeconds = Self.startSeconds
    }

    /// Field 22 of `stat`, in clock ticks since the machine was started; the name in field 2 may contain spaces.
    private static let startSeconds: Double = {
        let fields = text(of: "/proc/self/stat").split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 19, let ticks = Double(fields[19]) else { return 0 }
        var (real, sinceBoot) = (timespec(), timespec())
        clock_gettime(CLOCK_REALTIME, &real)
        clock_gettime(CLOCK_BOOTTIME, &sinceBoot)
        let boot = Double(real.tv_sec - sinceBoot.tv_sec) + Double(real.tv_nsec - sinceBoot.tv_nsec) / 1e9
        return boot + ticks / Double(sysconf(CInt(_SC_CLK_TCK)))
    }()

    private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }

    private static func countDescriptors() -> Int {
        guard let directory = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(directory) }
        var count = 0
        while let entry = readdir(directory) {
            if entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
        }
        // The directory's own is not counted.
        return count - 1
    }

    /// A short file; empty where it cannot be read.
    private static func text(of path: String) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }
}
