import CRUDWire
import NIOCore

/// The only handler of a connection's channel: it splits input into frames, and writes bursts of frames.
///
/// It belongs to one attempt to connect. When the connection has detached it, it closes its channel and makes no
/// further calls.
final class FrameHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var connection: DaemonConnection?
    private var context: ChannelHandlerContext?
    private var splitter = FrameSplitter()
    private var error: (any Error)?

    init(connection: DaemonConnection) {
        self.connection = connection
    }

    /// Whether the socket accepts more bytes.
    var isWritable: Bool { context?.channel.isWritable ?? false }

    func write(_ buffer: ByteBuffer) {
        context?.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    /// Closes the channel; the connection is not called any more.
    func detach() {
        connection = nil
        context?.close(promise: nil)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    func channelActive(context: ChannelHandlerContext) {
        if let connection {
            connection.connected()
        } else {
            context.close(promise: nil)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        splitter.append(unwrapInboundIn(data))
        // Any frame may lead to `detach()`.
        while let connection, let frame = splitter.next() {
            switch frame {
            case .json(let text): connection.received(text)
            case .tooLong(let length): connection.protocolViolated("a frame of \(length) bytes")
            }
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        connection?.send()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.error = error
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        connection?.channelClosed(error)
    }
}
