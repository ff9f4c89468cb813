import Testing

@testable import CRUDPluginHost

@Suite struct HandoverTests {
    @Test func givenBeforeItIsWaitedFor() {
        let handover = Handover<String>()
        handover.give("early")
        #expect(handover.wait() == "early")
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
