import Glibc

/// The clock that nobody sets (CLOCK_MONOTONIC, clock_gettime(2)).
package enum MonotonicTime {
    /// The time since the machine was started.
    package static var now: Duration {
        let time = read()
        return Duration(
            secondsComponent: Int64(time.tv_sec), attosecondsComponent: Int64(time.tv_nsec) * 1_000_000_000)
    }

    /// The time `delay` from now, in the form that system calls take.
    static func timespec(after delay: Duration) -> timespec {
        let now = read()
        let (seconds, attoseconds) = delay.components
        let nanoseconds = now.tv_nsec + Int(attoseconds / 1_000_000_000)
        return Glibc.timespec(
            tv_sec: now.tv_sec + Int(seconds) + nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000)
    }

    private static func read() -> timespec {
        var time = Glibc.timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time
    }
}
