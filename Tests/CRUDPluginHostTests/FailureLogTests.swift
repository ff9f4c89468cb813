import Testing

@testable import CRUDPluginHost

/// A failing backend fills no log.
@Suite struct FailureLogTests {
    private let start = ContinuousClock.now

    @Test func holdsBackWhatRepeatsItself() {
        var log = FailureLog()
        #expect(log.line(for: "a", now: start) == "a")
        for second in 1..<10 { #expect(log.line(for: "a", now: start + .seconds(second)) == nil) }
        #expect(log.line(for: "a", now: start + .seconds(10)) == "a (9 more like the one before)")
        #expect(log.line(for: "a", now: start + .seconds(20)) == "a")
    }

    @Test func letsAnotherLineThroughAtOnce() {
        var log = FailureLog()
        #expect(log.line(for: "a", now: start) == "a")
        #expect(log.line(for: "a", now: start) == nil)
        #expect(log.line(for: "b", now: start) == "b (1 more like the one before)")
        #expect(log.line(for: "a", now: start) == "a")
    }
}
