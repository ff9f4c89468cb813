import CLinux
import Glibc
import Synchronization

/// Wakes a loop from any thread.
///
/// One atomic says what the loop is doing and whether anybody wants it:
///
/// | state | means | the loop leaves it | ``wake()`` turns it into |
/// | --- | --- | --- | --- |
/// | running | nobody has called since the loop last looked | before it sleeps, to sleeping | woken |
/// | sleeping | the same, and the loop is in epoll_wait or about to be | after it has slept, to running | woken, and writes |
/// | woken | somebody has called | when it looks, to running, and calls `woken()` | woken |
///
/// No call is lost. Both sides change the state by read-modify-write only, so all changes have one order, and in it a
/// call of ``wake()`` either
/// - comes before the loop looks: then the loop finds `woken`, and sees whatever the caller did before it called (the
///   caller's release meets the loop's acquire, through other callers' changes too); or
/// - comes after it: then the loop's step to `sleeping` fails on `woken` and it does not sleep; or, if that step came
///   first, the caller has found `sleeping` and writes to the eventfd, which ends epoll_wait now or as soon as it
///   begins.
///
/// This is why `wake()` exchanges even where it finds `woken`: a mere load could pass the caller's own writes.
///
/// A burst of calls costs at most one write(2), and none while the loop is running. The eventfd is watched for edges
/// and never read: its event only ends the sleep, the state says the rest. It is the waker's own, so that a late write
/// cannot hit a descriptor that somebody else has got in the meantime.
package final class Waker: Sendable {
    private static let running: UInt8 = 0
    private static let sleeping: UInt8 = 1
    private static let woken: UInt8 = 2

    private let state = Atomic<UInt8>(running)
    let eventDescriptor: CInt

    init() throws(SystemCallError) {
        eventDescriptor = eventfd(0, CInt(EFD_CLOEXEC | EFD_NONBLOCK))
        guard eventDescriptor >= 0 else { throw SystemCallError("eventfd") }
    }

    deinit {
        close(eventDescriptor)
    }

    /// Has the loop call ``TurnHandler/woken()`` soon; callable on any thread, also after the loop has ended.
    ///
    /// Whatever the caller has written before is visible to that call. Calls that come before the loop gets to it are
    /// answered by one.
    package func wake() {
        guard state.exchange(Self.woken, ordering: .acquiringAndReleasing) == Self.sleeping else { return }
        // It can fail on a full counter only, after 2^64 - 2 writes.
        _ = eventfd_write(eventDescriptor, 1)
    }

    /// The loop wants to sleep. False: somebody has called, it must not.
    func prepareToSleep() -> Bool {
        state.compareExchange(expected: Self.running, desired: Self.sleeping, ordering: .acquiringAndReleasing)
            .exchanged
    }

    /// The loop is up and looks. True: somebody has called since it last looked.
    func takeCall() -> Bool {
        state.exchange(Self.running, ordering: .acquiringAndReleasing) == Self.woken
    }
}
