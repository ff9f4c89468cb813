import Testing

@testable import CRUDPluginHost

@Suite struct HandoverTests {
    @Test func givenBeforeItIsWaitedFor() {
        let handover = Handover<String>()
        handover.give("early")
        #expect(handover.wait() == "early")
    }

    @Test func isWaitedForNoLongerThanThat() throws {
        let handover = Handover<String>()
        for patience in [Duration.zero, .milliseconds(20), .seconds(-1)] {
            let start = ContinuousClock.now
            #expect(handover.wait(atMost: patience) == nil)
            #expect(start.duration(to: .now) >= max(patience, .zero))
        }
        let thread = try Thread(named: "handover") { handover.give("late") }
        #expect(handover.wait(atMost: .seconds(30)) == "late")
        thread.join()
    }

    @Test func passesFromThreadToThread() throws {
        for number in 0..<200 {
            let (there, back) = (Handover<Int>(), Handover<Int>())
            let thread = try Thread(named: "handover") { back.give(there.wait() + 1) }
            there.give(number)
            #expect(back.wait() == number + 1)
            thread.join()
        }
    }
}
