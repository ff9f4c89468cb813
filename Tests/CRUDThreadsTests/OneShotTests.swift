import Testing

@testable import CRUDThreads

@Suite struct OneShotTests {
    @Test func canBeResolvedBeforeItIsWaitedFor() {
        let oneShot = OneShot<String>()
        oneShot.resolve("early")
        #expect(oneShot.wait() == "early")
    }

    @Test func theTimeoutEndsAWait() throws {
        let oneShot = OneShot<String>()
        for timeout in [Duration.zero, .milliseconds(20), .seconds(-1)] {
            let start = ContinuousClock.now
            #expect(oneShot.wait(atMost: timeout) == nil)
            #expect(start.duration(to: .now) >= max(timeout, .zero))
        }
        let thread = try Thread(named: "resolver") { oneShot.resolve("late") }
        #expect(oneShot.wait(atMost: .seconds(30)) == "late")
        thread.join()
    }

    @Test func valuesPassBetweenThreads() throws {
        for number in 0..<200 {
            let (question, reply) = (OneShot<Int>(), OneShot<Int>())
            let thread = try Thread(named: "resolver") { reply.resolve(question.wait() + 1) }
            question.resolve(number)
            #expect(reply.wait() == number + 1)
            thread.join()
        }
    }
}
