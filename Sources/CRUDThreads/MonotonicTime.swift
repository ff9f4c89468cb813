import Glibc

/// The clock that nobody sets (CLOCK_MONOTONIC, clock_gettime(2)).
package enum MonotonicTime {
    /// The time since the machine was started.
    package static var now: Duration { Duration(read()) }

    /// The same as a number, which takes fewer instructions to reckon with than a `Duration`.
    package static var nanoseconds: Int64 {
        let time = read()
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }

    /// The same as of the kernel's last tick, which costs a fraction of ``now`` (CLOCK_MONOTONIC_COARSE).
    package static var coarse: Duration {
        var time = Glibc.timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return Duration(time)
    }

    /// How far ``coarse`` may be behind: the time between two ticks.
    package static let tick: Duration = {
        var resolution = Glibc.timespec()
        clock_getres(CLOCK_MONOTONIC_COARSE, &resolution)
        return Duration(resolution)
    }()

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

/// What threads use of processors (clock_gettime(2)).
package enum ProcessorTime {
    /// Of the calling thread (CLOCK_THREAD_CPUTIME_ID).
    package static var ofThread: Duration {
        var time = Glibc.timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Duration(time)
    }
}

extension Duration {
    fileprivate init(_ time: timespec) {
        self.init(secondsComponent: Int64(time.tv_sec), attosecondsComponent: Int64(time.tv_nsec) * 1_000_000_000)
    }
}
