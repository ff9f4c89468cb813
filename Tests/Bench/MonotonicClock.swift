import Glibc

/// The clocks of a run, in nanoseconds, read without leaving user space where the kernel allows it.
enum MonotonicClock {
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
