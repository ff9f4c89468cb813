import Synchronization
import Testing

@testable import CRUDThreads

@Suite struct AdaptiveSpinTests {
    /// A clock that moves only when the test says so.
    private final class TestClock: Sendable {
        private let time = Mutex(Duration.seconds(1000))

        var now: Duration { time.withLock { $0 } }

        func advance(by duration: Duration) { time.withLock { $0 += duration } }
    }

    private let clock = TestClock()

    private func makeSpin() -> AdaptiveSpin { AdaptiveSpin { [clock] in clock.now } }

    /// How often a wait polls that sleeps for `sleep`; every poll takes `poll`.
    private func polls(_ spin: inout AdaptiveSpin, poll: Duration = .microseconds(50), sleep: Duration = .zero) -> Int {
        var polls = 0
        spin.wait {
            polls += 1
            clock.advance(by: poll)
            return nil
        } sleep: {
            clock.advance(by: sleep)
        }
        return polls
    }

    /// A spin whose last wait was short.
    private func makeSpinAfterShortWait() -> AdaptiveSpin {
        var spin = makeSpin()
        #expect(polls(&spin) == 0)
        return spin
    }

    @Test func theFirstWaitSleepsAtOnce() {
        var spin = makeSpin()
        #expect(polls(&spin) == 0)
    }

    @Test func aWaitAfterAShortOneSpins() {
        var spin = makeSpin()
        #expect(polls(&spin, sleep: AdaptiveSpin.limit - .microseconds(1)) == 0)
        var polls = 0
        let found: Int = spin.wait {
            polls += 1
            return polls < 3 ? nil : polls
        } sleep: {
            0
        }
        #expect(found == 3)
    }

    @Test(arguments: [(Duration.milliseconds(1), 20), (.zero, 0)])
    func limitCanBeChanged(limit: Duration, expected: Int) {
        var spin = AdaptiveSpin(limit: limit) { [clock] in clock.now }
        #expect(polls(&spin) == 0)
        #expect(polls(&spin) == expected)
    }

    @Test func spinningEndsAtTheLimit() {
        var spin = makeSpinAfterShortWait()
        #expect(polls(&spin, poll: AdaptiveSpin.limit / 4) == 4)
        #expect(polls(&spin) == 0, "the wait was long, though the sleep was short")
    }

    @Test func aWaitAfterALongOneSleepsAtOnce() {
        var spin = makeSpin()
        #expect(polls(&spin, sleep: AdaptiveSpin.limit) == 0)
        #expect(polls(&spin) == 0)
        #expect(polls(&spin) > 0)
    }

    @Test func contentionStopsSpinningForTheCoolDown() {
        var spin = makeSpinAfterShortWait()
        #expect(polls(&spin, poll: AdaptiveSpin.contention + .microseconds(1)) == 1)
        #expect(polls(&spin) == 0)
        #expect(polls(&spin) == 0, "a short wait does not end the cool-down")
        clock.advance(by: AdaptiveSpin.coolDown)
        #expect(polls(&spin) == 0, "waits within the cool-down do not count")
        #expect(polls(&spin) > 0)
    }

    @Test func aPollThatIsSlowerThanTheLimitIsNotContention() {
        var spin = makeSpinAfterShortWait()
        #expect(polls(&spin, poll: AdaptiveSpin.contention) == 1)
        #expect(polls(&spin) == 0)
        #expect(polls(&spin) > 0)
    }
}
