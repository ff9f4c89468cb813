import Glibc
import Testing

@testable import CRUDEventLoop

@Suite struct StreamEndTests {
    @Test func aHalfClosedPeerGetsItsReplies() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        peer.send("question")
        peer.shutDownWriting()
        try test.iterate { handler.calls == [.received("question"), .reachedEnd] }
        #expect(try test.iterateUntilIdle() <= 2)
        #expect(stream.isOpen)
        stream.output.append("reply")
        try test.iterate { peer.text == "reply" }
        #expect(!peer.hasReachedEnd)
        stream.closeWhenFlushed()
        try test.iterate { handler.isClosed }
        peer.receive()
        #expect(peer.hasReachedEnd)
    }

    @Test func aHalfClosedPeerThatLeavesIsClosed() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        let (peer, _) = try Peer.connected(to: test.loop, handler)
        peer.shutDownWriting()
        try test.iterate { handler.calls == [.reachedEnd] }
        peer.close()
        try test.iterate { handler.isClosed }
        #expect(handler.calls == [.reachedEnd, .closed])
    }

    @Test func everythingIsDeliveredThatAPeerSentBeforeItLeft() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        handler.recordsText = false
        handler.onReceived = { _, bytes, stream in
            stream.output.append("to nobody")
            if bytes.count > 10_000 { stream.resumeNextIteration() }
            return min(bytes.count, 10_000)
        }
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        // Unread output iterations the peer's close into an ECONNRESET.
        stream.output.append("unread")
        try test.iterate()
        let message = pattern(150_000)
        #expect(peer.send(message) == message.count)
        peer.close()
        try test.iterate { handler.isClosed }
        #expect(handler.bytes == message)
        #expect(handler.calls == [.reachedEnd, .closed])
        #expect(stream.pendingOutputBytes == 0)
        #expect(stream.bufferedInputBytes == 0)
    }

    @Test func aPausedStreamDoesNotSpinOnAPeerThatHasLeft() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        stream.pause()
        peer.send("last words")
        peer.close()
        #expect(try test.iterateUntilIdle() <= 3)
        #expect(handler.calls == [])
        stream.resume()
        try test.iterate { handler.isClosed }
        #expect(handler.calls == [.received("last words"), .reachedEnd, .closed])
    }

    @Test func theEndWaitsForUnconsumedBytesOfAPausedStream() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        handler.onReceived = { _, bytes, stream in
            stream.pause()
            return 1
        }
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        peer.send("ab")
        peer.close()
        #expect(try test.iterateUntilIdle() <= 3)
        #expect(handler.calls == [.received("ab")])
        stream.resume()
        #expect(try test.iterateUntilIdle() <= 3)
        #expect(handler.calls == [.received("ab"), .received("b")])
        stream.resume()
        try test.iterate { handler.isClosed }
        #expect(handler.calls == [.received("ab"), .received("b"), .reachedEnd, .closed])
    }

    @Test func bytesThatAreNeverConsumedDoNotDelayTheEnd() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        handler.onReceived = { _, _, _ in 0 }
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        peer.send("half a mess")
        peer.shutDownWriting()
        try test.iterate { handler.calls.last == .reachedEnd }
        #expect(stream.bufferedInputBytes == 0)
        #expect(stream.inputCapacity == 0)
        peer.close()
        try test.iterate { handler.isClosed }
        #expect(handler.calls.suffix(2) == [.reachedEnd, .closed])
        #expect(stream.bufferedInputBytes == 0)
    }

    @Test func aPeerThatStopsReadingStillHasItsInputExecuted() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        shutdown(peer.descriptor, CInt(SHUT_RD))
        stream.output.append("EPIPE, and no signal")
        peer.send("one ")
        try test.iterate { handler.text == "one " }
        stream.output.append("again")
        peer.send("two")
        try test.iterate { handler.text == "one two" }
        #expect(stream.pendingOutputBytes == 0)
        #expect(try test.iterateUntilIdle() <= 2)
        peer.close()
        try test.iterate { handler.isClosed }
    }

    @Test func aBlockedStreamNoticesThatItsPeerHasLeft() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        handler.onDrained = { $0.resume() }
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        stream.pause()
        stream.output.append(pattern(4 << 20).span)
        peer.send("order")
        #expect(try test.iterateUntilIdle() < 5)
        #expect(stream.pendingOutputBytes > 0)
        peer.close()
        try test.iterate { handler.isClosed }
        #expect(handler.calls == [.outputDrained, .received("order"), .reachedEnd, .closed])
        #expect(stream.pendingOutputBytes == 0)
    }

    @Test func aFinishingStreamNoticesThatItsPeerHasLeft() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        stream.output.append(pattern(4 << 20).span)
        stream.closeWhenFlushed()
        #expect(try test.iterateUntilIdle() < 5)
        peer.close()
        try test.iterate { handler.isClosed }
        #expect(handler.calls == [.closed])
    }

    // MARK: Handlers that close

    @Test func aHandlerMayCloseItsOwnStreamAnywhere() throws {
        let test = try TestLoop()
        defer { test.finish() }
        for place in 0..<3 {
            let handler = Recorder()
            handler.onReceived = { _, bytes, stream in
                if place == 0 { stream.close() }
                return place == 2 ? bytes.count : 1
            }
            handler.onEnd = { $0.close() }
            handler.onClosed = { stream in
                stream.close()
                stream.output.append("to nobody")
                stream.resume()
            }
            let (peer, _) = try Peer.connected(to: test.loop, handler)
            peer.send("abc")
            if place > 0 { peer.shutDownWriting() }
            try test.iterate { handler.isClosed }
            #expect(handler.calls.filter { $0 == .closed }.count == 1)
        }
    }

    @Test func aStreamClosedByAnotherInTheSameIterationIsNotCalledAgain() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handlers = [Recorder(), Recorder()]
        var streams: [Stream] = []
        for handler in handlers {
            handler.onReceived = { recorder, bytes, _ in
                for (other, stream) in zip(handlers, streams) where other !== recorder { stream.close() }
                return bytes.count
            }
        }
        let ends = try handlers.map { try Peer.connected(to: test.loop, $0) }
        streams = ends.map(\.stream)
        for end in ends { end.peer.send("x") }
        try test.iterate()
        let calls = handlers.map(\.calls)
        #expect(calls.contains([.received("x")]))
        #expect(calls.contains([.closed]))
    }

    @Test func aDescriptorIsNotReusedBeforeTheIterationEnds() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let closing = Recorder()
        let victim = Recorder()
        var victimStream: Stream?
        var newcomer: (CInt, CInt)?
        let (first, _) = try Peer.connected(to: test.loop, closing)
        let (second, stream) = try Peer.connected(to: test.loop, victim)
        victimStream = stream
        let number = stream.descriptor
        closing.onReceived = { _, bytes, _ in
            victimStream?.close()
            newcomer = try? socketPair()
            return bytes.count
        }
        first.send("x")
        try test.iterate()
        #expect(victim.calls == [.closed])
        let (near, far) = try #require(newcomer)
        #expect(near != number && far != number)
        let (one, other) = (Peer(near), Peer(far))

        // Now the number is free. Its new owner gets its own events.
        let heir = Recorder()
        let (third, heirStream) = try Peer.connected(to: test.loop, heir)
        second.send("to the dead")
        third.send("to the heir")
        try test.iterate { heir.text == "to the heir" }
        #expect(heirStream.descriptor == number || third.descriptor == number)
        #expect(victim.calls == [.closed])
        one.close()
        other.close()
    }
}
