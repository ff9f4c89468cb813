/// What a ``BackendClient`` needs of the event loop that it belongs to.
package protocol LoopContext: AnyObject {
    /// From 0, different for each loop of the daemon.
    var number: Int { get }
    /// Counts what has been received, so that it can be told whether a request is older than something else.
    var inputCount: UInt64 { get }
    /// The time of this iteration, on the loop's clock.
    var now: Duration { get }
    /// Hands an item back to the loop, which passes it to ``BackendClient/complete(_:)``; callable on any thread.
    var deliver: @Sendable (WorkItem) -> Void { get }
    /// Has the loop make another iteration at once.
    func wake()
    /// Registers a stream socket with the loop.
    ///
    /// - Returns: nil where the system has no room for another one; the descriptor is closed then.
    func openStream(_ descriptor: CInt, for channel: LoopChannel) -> (any ChannelTransport)?
}

/// The loop's end of a ``LoopChannel``: it moves the bytes, and closes the descriptor in the end.
package protocol ChannelTransport: AnyObject {
    var isOpen: Bool { get }
    func send(_ bytes: Span<UInt8>)
    /// The peer has announced so many bytes, of which a part is there.
    func expect(totalBytes: Int)
    func close()
    /// Has ``LoopChannel/timerFired()`` called once after this time; the last call counts.
    func schedule(after time: Duration)
}
