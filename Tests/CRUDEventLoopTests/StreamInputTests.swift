import Testing

@testable import CRUDEventLoop

@Suite struct StreamInputTests {
    /// Echoes messages of one length byte and as many bytes behind it, whole ones only.
    private func echoMessages(_: Recorder, _ bytes: [UInt8], _ stream: Stream) -> Int {
        var consumed = 0
        while consumed < bytes.count {
            let end = consumed + 1 + Int(bytes[consumed])
            guard end <= bytes.count else { break }
            stream.output.append(bytes[consumed..<end].span)
            consumed = end
        }
        return consumed
    }

    @Test func echoesMessagesSplitAtEveryByte() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        handler.onReceived = echoMessages
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        let messages: [UInt8] = [5] + pattern(5) + [0] + [90] + pattern(90) + [1, 7]
        for split in 1..<messages.count {
            let before = peer.receive()
            let calls = handler.calls.count
            peer.send(messages[..<split])
            try test.iterate { handler.calls.count > calls }
            peer.send(messages[split...])
            try test.iterate { peer.receive() >= before + messages.count }
            #expect(peer.received[before...] == messages[...])
        }
        #expect(stream.bufferedInputBytes == 0)
    }

    @Test func handlesManyMessagesOfOneWriteInOneIteration() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        handler.onReceived = echoMessages
        let (peer, _) = try Peer.connected(to: test.loop, handler)
        let messages = Array(repeatElement([3, 1, 2, 3] as [UInt8], count: 5000).joined())
        #expect(peer.send(messages) == messages.count)
        try test.iterate()
        #expect(handler.calls.count == 1)
        #expect(peer.receive() == messages.count)
        #expect(peer.received == messages)
    }

    @Test func keepsOnlyWhatIsNotConsumed() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        handler.onReceived = { _, bytes, _ in bytes.count >= 10 ? 10 : bytes.count >= 6 ? 2 : 0 }
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        peer.send("abcdef")
        try test.iterate()
        #expect(stream.bufferedInputBytes == 4)
        peer.send("ghijkl")
        try test.iterate()
        #expect(handler.calls == [.received("abcdef"), .received("cdefghijkl")])
        #expect(stream.bufferedInputBytes == 0)
        #expect(stream.inputCapacity == 0)
    }

    @Test(arguments: [true, false]) func readsAMessageOf16MiB(withHint: Bool) throws {
        let test = try TestLoop()
        defer { test.finish() }
        let message = pattern(16 << 20)
        let handler = Recorder()
        handler.recordsText = false
        var calls = 0
        var capacities: Set<Int> = []
        handler.onReceived = { _, bytes, stream in
            calls += 1
            capacities.insert(stream.inputCapacity)
            if bytes.count >= message.count { return message.count }
            if withHint { stream.expects(totalBytes: message.count) }
            return 0
        }
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        // A second message begins in the same read as the first one ends.
        var unsent = (message + message.prefix(1000))[...]
        try test.iterate {
            unsent = unsent.dropFirst(peer.send(unsent.prefix(1 << 20)))
            return unsent.isEmpty && handler.bytes.count == message.count && stream.bufferedInputBytes == 1000
        }
        #expect(handler.bytes == message)
        // With the hint it was collected in one allocation.
        if withHint { #expect(capacities.isSubset(of: [0, message.count])) }
        #expect(stream.bufferedInputBytes == 1000)
        peer.close()
        try test.iterate { handler.isClosed }
        #expect(stream.bufferedInputBytes == 0)
    }

    @Test func deliversNothingWhilePausedAndUnconsumedBytesFirstAfterwards() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        handler.onReceived = { recorder, bytes, stream in
            guard recorder.calls.count == 1 else { return bytes.count }
            stream.pause()
            return 3
        }
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        peer.send("abcdef")
        try test.iterate()
        peer.send("ghi")
        // The socket is readable all the time, and the loop does not spin on it.
        #expect(try test.iterateUntilIdle() <= 3)
        #expect(handler.calls == [.received("abcdef")])
        stream.resume()
        try test.iterate { handler.text == "abcdefghi" }
        #expect(handler.calls == [.received("abcdef"), .received("def"), .received("ghi")])
    }

    @Test func deliversUnconsumedBytesAfterAPauseWithoutNewInput() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        handler.onReceived = { recorder, bytes, stream in
            stream.pause()
            return 1
        }
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        peer.send("abc")
        try test.iterate()
        for length in 2...3 {
            stream.resume()
            try test.iterate { handler.bytes.count == length }
        }
        #expect(handler.calls == [.received("abc"), .received("bc"), .received("c")])
    }

    @Test func aPauseThatEndsWithinTheIterationCostsNothing() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        let (peer, stream) = try Peer.connected(to: test.loop, handler)
        stream.pause()
        stream.resume()
        peer.send("abc")
        try test.iterate()
        #expect(handler.text == "abc")
    }

    @Test func aBusyPeerDoesNotDelayOthers() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let flooded = Recorder()
        flooded.recordsText = false
        var order = ""
        flooded.onReceived = { _, bytes, stream in
            order += "f"
            if bytes.count > 1000 { stream.resumeNextIteration() }
            return min(bytes.count, 1000)
        }
        let quiet = Recorder()
        quiet.onReceived = { _, bytes, _ in
            order += "q"
            return bytes.count
        }
        let (flooding, floodedStream) = try Peer.connected(to: test.loop, flooded)
        let (asking, _) = try Peer.connected(to: test.loop, quiet)
        let flood = pattern(100_000)
        #expect(flooding.send(flood) == flood.count)
        for _ in 0..<5 { try test.iterate() }
        #expect(order == "fffff")
        #expect(floodedStream.bufferedInputBytes == 95_000)
        // In an iteration in which it is readable the other one is even served first.
        asking.send("?")
        try test.iterate()
        #expect(order == "fffffqf")
        try test.iterate { flooded.bytes.count == flood.count }
        #expect(flooded.bytes == flood)
        #expect(order.count == 101)
    }

    @Test func nothingIsReadBeforeUnconsumedBytesAreDelivered() throws {
        let test = try TestLoop()
        defer { test.finish() }
        let handler = Recorder()
        handler.onReceived = { _, bytes, stream in
            if bytes.count > 1 { stream.resumeNextIteration() }
            return 1
        }
        let (peer, _) = try Peer.connected(to: test.loop, handler)
        peer.send("abc")
        try test.iterate()
        peer.send("d")
        for _ in 0..<3 { try test.iterate() }
        #expect(handler.calls == [.received("abc"), .received("bc"), .received("c"), .received("d")])
    }
}
