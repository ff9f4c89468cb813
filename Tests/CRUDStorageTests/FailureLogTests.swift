import Testing

@testable import CRUDStorage

/// A failing backend does not flood the log.
@Suite struct FailureLogTests {
    private let start = ContinuousClock.now

    @Test func suppressesRepeatedLine() {
        var log = FailureLog()
        #expect(log.line(for: "a", now: start) == "a")
        for second in 1..<10 { #expect(log.line(for: "a", now: start + .seconds(second)) == nil) }
        #expect(log.line(for: "a", now: start + .seconds(10)) == "a (9 more like this one)")
        #expect(log.line(for: "a", now: start + .seconds(20)) == "a")
    }

    @Test func suppressesEachOfSeveralLines() {
        var log = FailureLog()
        for second in 0..<10 {
            let isFirst = second == 0
            #expect(log.line(for: "a", now: start + .seconds(second)) == (isFirst ? "a" : nil))
            #expect(log.line(for: "b", now: start + .seconds(second)) == (isFirst ? "b" : nil))
        }
    }

    @Test func remembersFewLines() {
        var log = FailureLog()
        for number in 0..<17 { #expect(log.line(for: "\(number)", now: start + .milliseconds(number)) == "\(number)") }
        #expect(log.line(for: "16", now: start + .seconds(1)) == nil)
        #expect(log.line(for: "0", now: start + .seconds(1)) == "0")
    }
}
