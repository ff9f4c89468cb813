import Testing

@testable import CRUDStorage

/// The pauses between the attempts to open a storage.
@Suite struct RestartPolicyTests {
    private func milliseconds(_ pauses: [Duration]) -> [Int] { pauses.map { Int($0 / .milliseconds(1)) } }

    @Test func childThatNeverServesIsStartedLessAndLessOften() {
        var policy = RestartPolicy(isChild: true)
        let pauses = (0..<12).map { _ in policy.failed(hasServed: false) }
        #expect(
            milliseconds(pauses) == [0, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 30000, 30000, 30000])
        #expect(policy.isCircuitOpen)
    }

    @Test func childThatHasServedIsStartedAtOnce() {
        var policy = RestartPolicy(isChild: true)
        for _ in 0..<20 { #expect(policy.failed(hasServed: true) == .zero) }
        for _ in 0..<11 { _ = policy.failed(hasServed: false) }
        #expect(policy.isCircuitOpen)
        #expect(policy.failed(hasServed: true) == .zero)
        #expect(!policy.isCircuitOpen)
        #expect(policy.failed(hasServed: false) == .milliseconds(100))
    }

    @Test func pluginInsideTheDaemonWaitsFromTheFirstFailureOn() {
        var policy = RestartPolicy(isChild: false)
        let pauses = (0..<11).map { _ in policy.failed(hasServed: false) }
        #expect(milliseconds(pauses) == [100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000])
    }

    @Test func storageThatIsUnavailableIsAskedForEverySecond() {
        var policy = RestartPolicy(isChild: false)
        let pauses = (0..<12).map { _ in policy.wasUnavailable() }
        #expect(
            milliseconds(pauses) == [100, 200, 400, 800, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000])
        #expect(!policy.isCircuitOpen)
    }
}
