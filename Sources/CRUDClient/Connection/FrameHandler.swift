import CRUDWire
import NIOCore

/// The one handler of a connection's channel: bytes to frames inwards, bursts of frames outwards.
///
/// It belongs to one attempt to be connected. Once the connection has let go of it, it says nothing any more and closes
/// its channel.
final class FrameHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var connection: Connection?
    private var context: ChannelHandlerContext?
    private var reader = FrameReader()
    private var fault: (any Error)?

    init(connection: Connection) {
        self.connection = connection
    }

    /// Whether the socket takes more.
    var isWritable: Bool { context?.channel.isWritable ?? false }

    func write(_ buffer: ByteBuffer) {
        context?.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    /// Says nothing any more and closes the channel.
    func letGo() {
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
        reader.append(unwrapInboundIn(data))
        // Any frame can be the reason to let go.
        while let connection, let frame = reader.next(maximumFrameBytes: connection.maximumFrameBytes) {
            switch frame {
            case .json(let text): connection.received(text)
            case .tooLong(let length): connection.protocolBroken("a frame of \(length) bytes")
            }
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        connection?.send()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fault = error
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        connection?.lost(fault)
    }
}
