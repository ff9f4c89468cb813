import Testing

@testable import CRUDPluginHost

@Suite struct SupervisionTests {
    @Test func aChildThatNeverServesIsTriedLessAndLess() {
        var supervision = Supervision(isChild: true)
        let pauses = (0..<12).map { _ in supervision.failed(hasServed: false) }
        #expect(
            pauses.map { Int($0 / .milliseconds(1)) }
                == [0, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 30000, 30000, 30000])
        #expect(supervision.isOpen)
    }

    @Test func oneThatServedIsStartedAtOnce() {
        var supervision = Supervision(isChild: true)
        for _ in 0..<20 { #expect(supervision.failed(hasServed: true) == .zero) }
        for _ in 0..<11 { _ = supervision.failed(hasServed: false) }
        #expect(supervision.isOpen)
        #expect(supervision.failed(hasServed: true) == .zero)
        #expect(!supervision.isOpen)
        #expect(supervision.failed(hasServed: false) == .milliseconds(100))
    }

    @Test func aPluginInsideTheDaemonWaitsFromTheFirst() {
        var supervision = Supervision(isChild: false)
        let pauses = (0..<11).map { _ in supervision.failed(hasServed: false) }
        #expect(
            pauses.map { Int($0 / .milliseconds(1)) }
                == [100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000])
    }
}
