import Glibc
import Synchronization
import Testing

@testable import CRUDEventLoop

@Suite struct WakerTests {
    @Test func aBurstIsOneCall() throws {
        let test = try TestLoop()
        defer { test.finish() }
        var calls = 0
        test.onWoken = { calls += 1 }
        for _ in 0..<1000 { test.loop.waker.wake() }
        try test.turn()
        #expect(calls == 1)
        // Nothing is left behind.
        #expect(try test.turnUntilIdle() == 1)
        #expect(calls == 1)
    }

    @Test func aCallFromTheLoopItselfIsHeardInTheNextTurn() throws {
        let test = try TestLoop()
        defer { test.finish() }
        var calls = 0
        test.onWoken = {
            calls += 1
            if calls < 3 { test.loop.waker.wake() }
        }
        test.loop.waker.wake()
        try test.turn { calls == 3 }
        #expect(test.turns == 3)
    }

    @Test func outlivesItsLoop() throws {
        var waker: Waker?
        do {
            let test = try TestLoop()
            waker = test.loop.waker
            test.finish()
        }
        waker?.wake()
    }

    /// What the threads and the loop have in common.
    private final class Board: Sendable {
        let asked = Atomic(0)
        let answered = Atomic(0)
    }

    /// Each thread asks, wakes the loop, and waits for its answer before it asks again: no call can make up for
    /// another that was lost.
    @Test func noCallIsLostWhenEachIsWaitedFor() throws {
        let (threads, rounds) = (4, 5000)
        let test = try TestLoop()
        let boards = (0..<threads).map { _ in Board() }
        let hasGivenUp = Atomic(false)
        test.onWoken = {
            for board in boards {
                board.answered.store(board.asked.load(ordering: .relaxed), ordering: .releasing)
            }
            if boards.allSatisfy({ $0.answered.load(ordering: .relaxed) == rounds }) { test.loop.stop() }
        }
        let waker = test.loop.waker
        let running = boards.map { board in
            TestThread {
                for round in 1...rounds {
                    // Relaxed on purpose: it is the waker that has to make it visible.
                    board.asked.store(round, ordering: .relaxed)
                    waker.wake()
                    while board.answered.load(ordering: .acquiring) < round {
                        if hasGivenUp.load(ordering: .relaxed) { return }
                        sched_yield()
                    }
                }
            }
        }
        defer {
            hasGivenUp.store(true, ordering: .relaxed)
            for thread in running { thread.join() }
        }
        try test.run()
        #expect(boards.map { $0.answered.load(ordering: .relaxed) } == Array(repeating: rounds, count: threads))
    }

    @Test func noCallIsLostInAStorm() throws {
        let (threads, rounds) = (4, 50_000)
        let test = try TestLoop()
        let board = Board()
        var seen = 0
        test.onWoken = {
            seen = board.asked.load(ordering: .relaxed)
            if seen == threads * rounds { test.loop.stop() }
        }
        let waker = test.loop.waker
        let running = (0..<threads).map { _ in
            TestThread {
                for _ in 0..<rounds {
                    board.asked.add(1, ordering: .relaxed)
                    waker.wake()
                }
            }
        }
        defer { for thread in running { thread.join() } }
        try test.run()
        #expect(seen == threads * rounds)
    }
}
