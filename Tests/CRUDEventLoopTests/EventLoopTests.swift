import CRUDThreads
import Synchronization
import Testing

@testable import CRUDEventLoop

@Suite struct EventLoopTests {
    @Test func executesTheStepsOfAnIterationInOrder() throws {
        let test = try TestLoop()
        defer { test.finish() }
        var order: [String] = []
        let handler = Recorder()
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        handler.onReceived = { _, bytes, stream in
            order.append("received")
            stream.output.append("reply")
            return bytes.count
        }
        handler.onDrained = { _ in order.append("drained") }
        handler.onClosed = { _ in order.append("closed") }
        test.onWoken = { order.append("woken") }
        test.onInputWasRead = {
            order.append("inputWasRead")
            stream.pause()
            stream.closeWhenFlushed()
        }
        test.onIterationWillEnd = { order.append("iterationWillEnd") }
        let timer = Timer(on: test.loop) { order.append("timer") }
        timer.schedule(after: .zero)
        peer.send("x")
        test.loop.waker.wake()
        try test.iterate()
        #expect(order == ["woken", "timer", "received", "inputWasRead", "closed", "iterationWillEnd"])
        #expect(peer.text == "reply")
    }

    @Test func stopClosesEverythingThatIsOpen() throws {
        let test = try TestLoop()
        let handlers = (0..<20).map { _ in Recorder() }
        let ends = try handlers.map { try Peer.connected(to: test.loop, $0) }
        for end in ends.prefix(10) { end.peer.send("x") }
        test.onInputWasRead = {
            for end in ends { end.stream.output.append("bye") }
            test.loop.stop()
        }
        try test.run()
        for (handler, end) in zip(handlers, ends) {
            #expect(handler.isClosed)
            #expect(end.peer.text == "bye")
            #expect(end.peer.hasReachedEnd)
        }
        #expect(test.iterations == 1)
    }

    @Test func nothingOutlivesALoopThatHasRun() throws {
        weak var loop: EventLoop?
        weak var stream: Stream?
        do {
            let iterations = Iterations()
            let handler = Recorder()
            let running = try EventLoop()
            let (peer, open) = try Peer.connected(to: running, handler)
            (loop, stream) = (running, open)
            Timer(on: running) {}.schedule(after: .seconds(60))
            iterations.onIterationWillEnd = { [weak open, weak running] in
                open?.output.append("too late")
                open?.resumeNextIteration()
                running?.stop()
            }
            peer.send("x")
            running.run(iterations)
            #expect(handler.isClosed)
        }
        #expect(stream == nil)
        #expect(loop == nil)
    }

    private final class Iterations: IterationHandler {
        var onIterationWillEnd: () -> Void = {}
        func woken() {}
        func inputWasRead() {}
        func iterationWillEnd() { onIterationWillEnd() }
    }

    @Test func severalLoopsRunInOneProcess() throws {
        let sums = Mutex<[Int]>([])
        let threads = try (0..<3).map { number in
            try Thread(named: "loop") {
                // A failure leaves a sum out.
                guard let test = try? TestLoop() else { return }
                let handler = Recorder()
                guard let (peer, _) = try? Peer.connected(to: test.loop, handler) else { return }
                handler.onReceived = { _, bytes, stream in
                    stream.output.append(bytes.span)
                    return bytes.count
                }
                for round in 1...100 {
                    peer.send(String(number))
                    try? test.iterate { peer.receive() == round }
                }
                test.finish()
                sums.withLock { $0.append(peer.received.count) }
            }
        }
        for thread in threads { thread.join() }
        #expect(sums.withLock { $0 } == [100, 100, 100])
    }
}
