import CRUDEventLoop
import CRUDStorage

/// A stream socket of an event loop that a ``LoopChannel`` talks to a child over. It lives until it is closed.
final class StreamTransport: ChannelTransport, StreamHandler {
    private let channel: LoopChannel
    private var stream: Stream?
    private let timer: Timer

    /// - Throws: where the system has no room for another stream; the descriptor then remains the caller's.
    init(_ descriptor: CInt, for channel: LoopChannel, on loop: EventLoop) throws(SystemCallError) {
        self.channel = channel
        // The channel holds its transport: it is there when the timer fires, unless the stream has been closed.
        timer = Timer(on: loop) { [weak channel] in channel?.timerFired() }
        stream = try Stream(descriptor, on: loop, handler: self)
    }

    // MARK: The channel's side

    var isOpen: Bool { stream?.isOpen == true }

    func send(_ bytes: Span<UInt8>) { stream?.output.append(bytes) }

    func expect(totalBytes: Int) { stream?.expects(totalBytes: totalBytes) }

    func close() { stream?.close() }

    func schedule(after time: Duration) { timer.schedule(after: time) }

    // MARK: The stream's side

    func received(_ bytes: Span<UInt8>, from stream: Stream) -> Int { channel.received(bytes) }

    func reachedEnd(of stream: Stream) { stream.close() }

    func outputWritten(to stream: Stream) {}

    func closed(_ stream: Stream) {
        self.stream = nil
        timer.cancel()
        channel.closed()
    }
}
