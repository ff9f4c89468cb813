import Testing

@testable import CRUDEventLoop

@Suite struct StreamOutputTests {
    @Test func writesTheOutputOfAnIterationAtOnce() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        handler.onReceived = { _, bytes, stream in
            stream.output.append("one ")
            stream.output.append("two ")
            return bytes.count
        }
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        test.onInputWasRead = {
            // Nothing has been written yet.
            #expect(peer.receive() == 0)
            stream.output.append("three")
            #expect(stream.pendingOutputBytes == 13)
        }
        peer.send("?")
        try test.iterate()
        #expect(peer.text == "one two three")
        #expect(stream.pendingOutputBytes == 0)
        #expect(stream.outputCapacity == 0)
        #expect(stream.pendingOutputBytes == 0)
    }

    @Test func outputOfTheIterationsEndFollowsAtOnce() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let (peer, stream) = try Peer.connected(to: test.loop, Recorder())
        test.onIterationWillEnd = { if test.iterations == 1 { stream.output.append("late") } }
        peer.send("?")
        try test.iterate { peer.text == "late" }
        #expect(test.iterations == 2)
    }

    @Test func writesWhatWasAppendedBeforeAnErrorWasThrown() throws {
        struct Failure: Error {}
        func append(to output: inout StreamBuffer) throws {
            output.append("so far")
            throw Failure()
        }
        let test = try TestLoop()
        defer { test.finish() }
        let (peer, stream) = try Peer.connected(to: test.loop, Recorder())
        #expect(throws: Failure.self) { try append(to: &stream.output) }
        stream.output.append(" so good")
        try test.iterate()
        #expect(peer.text == "so far so good")
        #expect(stream.pendingOutputBytes == 0)
    }

    @Test func trapsWhenTwoAppendAtOnce() async {
        await #expect(processExitsWith: .failure) {
            let test = try TestLoop()
            let (_, stream) = try Peer.connected(to: test.loop, Recorder())
            func appendTwice(_ output: inout StreamBuffer) {
                stream.output.append("inner")
                output.append("outer")
            }
            appendTwice(&stream.output)
        }
    }

    @Test func aPeerThatDoesNotReadIsBoundedAndGetsEverything() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let limit = 100_000
        let handler = Recorder()
        handler.recordsText = false
        handler.onReceived = { _, bytes, stream in
            stream.output.append(bytes.span)
            if stream.pendingOutputBytes > limit { stream.pause() }
            return bytes.count
        }
        handler.onDrained = { $0.resume() }
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        let message = pattern(8 << 20)
        var unsent = message[...]

        // Nobody reads: the peer can send until sockets and stream are full.
        var progress = 0
        repeat {
            progress = peer.send(unsent)
            unsent = unsent.dropFirst(progress)
            #expect(try test.iterateUntilIdle() < 10)
            #expect(stream.pendingOutputBytes + stream.bufferedInputBytes <= limit + test.loop.receiveBuffer.count)
        } while progress > 0
        #expect(stream.pendingOutputBytes > limit)
        #expect(stream.pendingOutputBytes == stream.pendingOutputBytes)
        #expect(!unsent.isEmpty)

        try test.iterate {
            unsent = unsent.dropFirst(peer.send(unsent.prefix(100_000)))
            return peer.receive() == message.count
        }
        #expect(peer.received == message)
        #expect(stream.pendingOutputBytes == 0)
        #expect(stream.outputCapacity == 0)
    }

    @Test func tellsAPausedStreamThatItsOutputIsGone() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        stream.output.append("not paused")
        try test.iterate()
        stream.pause()
        stream.output.append(", paused")
        try test.iterate()
        #expect(peer.text == "not paused, paused")
        #expect(handler.calls == [.outputDrained])
    }

    @Test func closesWhenFlushedAndNotBefore() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        let output = pattern(2 << 20)
        stream.output.append(output.span)
        stream.closeWhenFlushed()
        peer.send("nobody listens any more")
        #expect(try test.iterateUntilIdle() < 10)
        #expect(!stream.isOpen)
        #expect(handler.calls == [])
        try test.iterate {
            peer.receive()
            return handler.isClosed
        }
        peer.receive()
        #expect(peer.received == output)
        #expect(peer.hasReachedEnd)
        #expect(handler.calls == [.closed])
    }

    @Test func closeDropsOutput() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        stream.output.append("never seen")
        stream.close()
        stream.close()
        stream.closeWhenFlushed()
        stream.output.append("nor this")
        #expect(stream.pendingOutputBytes == 0)
        try test.iterate()
        stream.output.append("nor that")
        #expect(stream.pendingOutputBytes == 0)
        #expect(stream.pendingOutputBytes == 0)
        #expect(peer.text == "")
        #expect(peer.hasReachedEnd)
        #expect(handler.calls == [.closed])
    }
}
