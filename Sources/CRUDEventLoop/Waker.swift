import CLinux
import Glibc
import Synchronization

/// Wakes a loop from any thread.
///
/// One atomic holds the state of the loop and whether it has been called:
///
/// | state | means | the loop leaves it | ``wake()`` turns it into |
/// | --- | --- | --- | --- |
/// | running | no call since the loop last checked | before it sleeps, to sleeping | woken |
/// | sleeping | the same, and the loop is in or near epoll_wait | after it has slept, to running | woken, and writes |
/// | woken | there has been a call | when it checks, to running, and calls `woken()` | woken |
///
/// No call is lost. Both sides change the state by read-modify-write only, so all changes have one order, in which a
/// call of ``wake()`` either
/// - precedes the loop's check: then the loop finds `woken`, and sees whatever the caller did before it called (the
///   caller's release pairs with the loop's acquire, through other callers' changes too); or
/// - follows it: then the loop's change to `sleeping` fails on `woken` and it does not sleep; or, if that change came
///   first, the caller has found `sleeping` and writes to the eventfd, which ends epoll_wait now or as soon as it
///   begins.
///
/// This is why `wake()` exchanges even where it finds `woken`: a mere load could be reordered before the caller's own
/// writes.
///
/// A burst of calls costs at most one write(2), and none while the loop is running. The eventfd is watched for edges
/// and never read: its event only ends the sleep, the state does the rest. The waker owns it, so that a late write
/// cannot reach a descriptor that has been reused in the meantime.
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

    /// Makes the loop call ``IterationHandler/woken()`` soon; callable on any thread, also after the loop has ended.
    ///
    /// Whatever the caller has written before is visible to that call. Several calls of this may lead to one of that.
    package func wake() {
        guard state.exchange(Self.woken, ordering: .acquiringAndReleasing) == Self.sleeping else { return }
        // It can fail only on a full counter, after 2^64 - 2 writes.
        _ = eventfd_write(eventDescriptor, 1)
    }

    /// Called before the loop sleeps. Returns false if there has been a call, so that it must not sleep.
    func prepareToSleep() -> Bool {
        state.compareExchange(expected: Self.running, desired: Self.sleeping, ordering: .acquiringAndReleasing)
            .exchanged
    }

    /// Called after the loop has slept. Returns whether there has been a call since it last checked.
    func takeCall() -> Bool {
        state.exchange(Self.running, ordering: .acquiringAndReleasing) == Self.woken
    }
}
