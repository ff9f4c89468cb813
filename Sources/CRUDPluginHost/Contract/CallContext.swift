package import CRUDPluginABI
import Glibc

/// What a caller tells a plugin of a call that may last: the clock, a deadline, and whether to stop.
///
/// Kept from call to call by whoever makes calls, one thread at a time; a call without an interrupt allocates nothing.
package struct CallContext: ~Copyable {
    private let call: UnsafeMutablePointer<crudd_call>

    /// - Parameters:
    ///   - interrupted: of every call that ``begin(now:deadline:)`` prepares; NULL: nobody interrupts them.
    ///   - context: of `interrupted`.
    package init(
        interrupted: (@convention(c) (UnsafeMutableRawPointer?) -> Int32)? = nil,
        context: UnsafeMutableRawPointer? = nil
    ) {
        call = .allocate(capacity: 1)
        call.initialize(to: .sized())
        call.pointee.interrupted = interrupted
        call.pointee.context = context
    }

    deinit { call.deallocate() }

    /// Prepares a call.
    ///
    /// - Parameters:
    ///   - now: milliseconds since 1970-01-01 UTC.
    ///   - deadline: nanoseconds of CLOCK_MONOTONIC, see ``deadline(in:)``; 0: none.
    /// - Returns: what the plugin is handed, valid until the next call is prepared.
    package func begin(now: Int64 = Self.now, deadline: Int64 = 0) -> UnsafePointer<crudd_call> {
        call.pointee.now = now
        call.pointee.deadline = deadline
        return UnsafePointer(call)
    }

    /// Makes a call that may be interrupted.
    ///
    /// - Parameters:
    ///   - isInterrupted: asked by the plugin every millisecond or so: whether nobody waits for the result any more.
    ///   - body: makes the call.
    package func perform<Result>(
        now: Int64 = Self.now, deadline: Int64 = 0, isInterrupted: () -> Bool,
        _ body: (UnsafePointer<crudd_call>) -> Result
    ) -> Result {
        withoutActuallyEscaping(isInterrupted) { isInterrupted in
            var interrupt = isInterrupted
            return withUnsafeMutablePointer(to: &interrupt) { interrupt in
                let before = (call.pointee.interrupted, call.pointee.context)
                call.pointee.interrupted = { context in
                    // `context` is the closure above, which outlives the call.
                    context?.assumingMemoryBound(to: (() -> Bool).self).pointee() == true ? 1 : 0
                }
                call.pointee.context = UnsafeMutableRawPointer(interrupt)
                defer { (call.pointee.interrupted, call.pointee.context) = before }
                return body(begin(now: now, deadline: deadline))
            }
        }
    }

    // MARK: Clocks

    /// The clock by which records expire: milliseconds since 1970-01-01 UTC.
    package static var now: Int64 {
        let time = read(CLOCK_REALTIME)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// The clock of deadlines: nanoseconds of CLOCK_MONOTONIC.
    package static var monotonicNanoseconds: Int64 {
        let time = read(CLOCK_MONOTONIC)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// The deadline of a call that has so long from now on.
    package static func deadline(in time: Duration) -> Int64 {
        let (seconds, attoseconds) = time.components
        return monotonicNanoseconds + seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    private static func read(_ clock: clockid_t) -> timespec {
        var time = timespec()
        clock_gettime(clock, &time)
        return time
    }
}
