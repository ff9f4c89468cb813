import CRUDThreads
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
        try test.iterate()
        #expect(calls == 1)
        // Nothing is left behind.
        #expect(try test.iterateUntilIdle() == 1)
        #expect(calls == 1)
    }

    @Test func aCallFromTheLoopItselfReachesTheNextIteration() throws {
        let test = try TestLoop()
        defer { test.finish() }
        var calls = 0
        test.onWoken = {
            calls += 1
            if calls < 3 { test.loop.waker.wake() }
        }
        test.loop.waker.wake()
        try test.iterate { calls == 3 }
        #expect(test.iterations == 3)
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
        let replied = Atomic(0)
    }

    /// Each thread asks, wakes the loop, and waits for the reply before it asks again: no call can make up for another
    /// that was lost.
    @Test func noCallIsLostWhenEachIsWaitedFor() throws {
        let (threads, rounds) = (4, 5000)
        let test = try TestLoop()
        let boards = (0..<threads).map { _ in Board() }
        let hasGivenUp = Atomic(false)
        test.onWoken = {
            for board in boards {
                board.replied.store(board.asked.load(ordering: .relaxed), ordering: .releasing)
            }
            if boards.allSatisfy({ $0.replied.load(ordering: .relaxed) == rounds }) { test.loop.stop() }
        }
        let waker = test.loop.waker
        let running = try boards.map { board in
            try Thread(named: "caller") {
                for round in 1...rounds {
                    // Relaxed on purpose: it is the waker that has to make it visible.
                    board.asked.store(round, ordering: .relaxed)
                    waker.wake()
                    while board.replied.load(ordering: .acquiring) < round {
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
        #expect(boards.map { $0.replied.load(ordering: .relaxed) } == Array(repeating: rounds, count: threads))
    }

    @Test func noCallIsLostAmongMany() throws {
        let (threads, rounds) = (4, 50_000)
        let test = try TestLoop()
        let board = Board()
        var seen = 0
        test.onWoken = {
            seen = board.asked.load(ordering: .relaxed)
            if seen == threads * rounds { test.loop.stop() }
        }
        let waker = test.loop.waker
        let running = try (0..<threads).map { _ in
            try Thread(named: "caller") {
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
