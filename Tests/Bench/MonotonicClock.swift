import FoundationEssentials
import Glibc

/// The clocks of a run, in nanoseconds, read without leaving user space where the kernel allows it.
enum MonotonicClock {
    /// The processor time that other processes have used, in nanoseconds; the kernel counts hundredths of a second.
    static func processorTime(of processes: [Int32]) -> UInt64 {
        processes.reduce(0) { sum, process in
            guard let text = try? String(contentsOf: URL(filePath: "/proc/\(process)/stat"), encoding: .utf8),
                let name = text.lastIndex(of: ")")
            else { return sum }
            // utime and stime are the 14th and 15th field, of which the third is the first behind the name.
            let fields = text[name...].split(separator: " ").dropFirst(12).prefix(2)
            return sum + fields.compactMap { UInt64($0) }.reduce(0, +) * 10_000_000
        }
    }

    static func now() -> UInt64 {
        read(CLOCK_MONOTONIC)
    }

    /// Processor time that this process has used, in user space and in the kernel.
    static func processorTime() -> UInt64 {
        read(CLOCK_PROCESS_CPUTIME_ID)
    }

    private static func read(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
