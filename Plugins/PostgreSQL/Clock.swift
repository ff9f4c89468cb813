import Glibc

/// Clocks of the system, in nanoseconds.
enum Clock {
    /// The clock of deadlines.
    static var monotonic: Int64 { read(CLOCK_MONOTONIC) }
    /// The clock of leases: it does not stand still while the machine sleeps.
    static var boot: Int64 { read(CLOCK_BOOTTIME) }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
