import CRUDPluginABI
import Glibc

/// The parameters of a call that may take long.
package struct PluginCall {
    /// By which records expire: milliseconds since 1970-01-01 UTC; nil: the time of the call.
    package var now: Int64?
    /// Nanoseconds of CLOCK_MONOTONIC; 0: none.
    package var deadline: Int64 = 0
    /// Whether the call is to stop; nil: nobody will ask it to.
    package var isInterrupted: (() -> Bool)?

    package init() {}

    /// The time as records expire by it.
    package static var currentTime: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// A deadline `delay` from now.
    static func deadline(after delay: Duration) -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return (Int64(time.tv_sec) + delay.components.seconds) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Makes a call with these parameters.
    func with<Result>(_ memory: CallMemory, _ body: (UnsafePointer<crudd_call>) -> Result) -> Result {
        var raw = crudd_call()
        raw.now = now ?? Self.currentTime
        raw.deadline = deadline
        let interrupt = isInterrupted.map(Interrupt.init)
        if let interrupt {
            raw.context = Unmanaged.passUnretained(interrupt).toOpaque()
            // The context is the object above, which lives until the call has returned.
            raw.interrupted = { Unmanaged<Interrupt>.fromOpaque($0!).takeUnretainedValue().isRaised() ? 1 : 0 }
        }
        return withExtendedLifetime(interrupt) { body(memory.copy(raw)) }
    }

    private final class Interrupt {
        let isRaised: () -> Bool

        init(_ isRaised: @escaping () -> Bool) {
            self.isRaised = isRaised
        }
    }
}
