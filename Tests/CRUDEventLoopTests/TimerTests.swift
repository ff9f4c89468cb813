import Testing

@testable import CRUDEventLoop

@Suite struct TimerTests {
    @Test func fireInTheOrderOfTheirDeadlines() throws {
        let test = try TestLoop()
        defer { test.finish() }
        var random = SystemRandomNumberGenerator()
        var fired: [Int] = []
        // Many have the same deadline; those fire in the order in which they were set.
        let delays = (0..<500).map { _ in Int.random(in: 0...20, using: &random) }
        let timers = delays.indices.map { index in Timer(on: test.loop) { fired.append(index) } }
        for (timer, delay) in zip(timers, delays) { timer.schedule(after: .milliseconds(delay)) }
        let cancelled = Set((0..<200).map { _ in Int.random(in: 0..<500, using: &random) })
        for index in cancelled { timers[index].cancel() }
        let expected = delays.indices.filter { !cancelled.contains($0) }.sorted { (delays[$0], $0) < (delays[$1], $1) }
        try test.iterate { fired.count >= expected.count }
        #expect(fired == expected)
        #expect(timers.allSatisfy { !$0.isScheduled })
    }

    @Test func neverFiresEarlyAndDoesNotSpin() throws {
        let test = try TestLoop()
        defer { test.finish() }
        for milliseconds in [1, 3, 10] {
            let (start, iterations) = (test.loop.now, test.iterations)
            var fired: Duration?
            let timer = Timer(on: test.loop) { fired = test.loop.now }
            timer.schedule(after: .milliseconds(milliseconds))
            try test.iterate { fired != nil }
            #expect(try #require(fired) - start >= .milliseconds(milliseconds))
            #expect(test.iterations - iterations <= 2)
        }
    }

    @Test func canBeSetAgain() throws {
        let test = try TestLoop()
        defer { test.finish() }
        var fired = ""
        let one = Timer(on: test.loop) { fired += "1" }
        let two = Timer(on: test.loop) { fired += "2" }
        one.schedule(after: .milliseconds(2))
        two.schedule(after: .milliseconds(4))
        one.schedule(after: .milliseconds(6))
        try test.iterate { fired.count == 2 }
        #expect(fired == "21")
        one.schedule(after: .zero)
        try test.iterate { fired.count == 3 }
        #expect(fired == "211")
    }

    @Test func aTimerThatSetsItselfWithoutDelayFiresOncePerIteration() throws {
        let test = try TestLoop()
        defer { test.finish() }
        var fired = 0
        var timer: Timer?
        timer = Timer(on: test.loop) {
            fired += 1
            timer?.schedule(after: .seconds(-1))
        }
        timer?.schedule(after: .zero)
        for iteration in 1...5 {
            try test.iterate()
            #expect(fired == iteration)
        }
        timer?.cancel()
        timer = nil
    }

    @Test func canBeCancelledWhenItIsDueAlready() throws {
        let test = try TestLoop()
        defer { test.finish() }
        var fired = ""
        let two = Timer(on: test.loop) { fired += "2" }
        let one = Timer(on: test.loop) {
            fired += "1"
            two.cancel()
        }
        one.schedule(after: .zero)
        two.schedule(after: .zero)
        try test.iterate()
        #expect(fired == "1")
        #expect(!two.isScheduled)
        two.cancel()
    }
}
