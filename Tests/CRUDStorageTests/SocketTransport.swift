import CRUDTestSupport
import Glibc

@testable import CRUDStorage

/// A channel's socket, whose bytes the test moves.
final class SocketTransport: ChannelTransport {
    private var descriptor: Descriptor?
    private let channel: LoopChannel
    private var received: [UInt8] = []
    /// What has been sent.
    private(set) var sent: [UInt8] = []
    /// What the channel has announced of the frame that it waits for.
    private(set) var expectedBytes = 0
    /// After which time the timer is to fire.
    private(set) var timer: Duration?

    init(owning descriptor: CInt, for channel: LoopChannel) {
        self.descriptor = Descriptor(owning: descriptor)
        self.channel = channel
    }

    var isOpen: Bool { descriptor != nil }

    func send(_ bytes: Span<UInt8>) {
        guard let descriptor else { return }
        let bytes = bytes.indices.map { bytes[$0] }
        sent += bytes
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor.number, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    func expect(totalBytes: Int) { expectedBytes = totalBytes }

    func close() {
        guard descriptor.take() != nil else { return }
        channel.closed()
    }

    func schedule(after time: Duration) { timer = time }

    // MARK: The test's side

    /// Lets the timer fire.
    func fireTimer() {
        timer = nil
        channel.timerFired()
    }

    /// Gives the channel bytes, as if the child had sent them.
    func receive(_ bytes: [UInt8]) {
        received += bytes
        let consumed = channel.received(Array(received).span)
        received.removeFirst(consumed)
    }

    /// Waits for what the child sends, and gives it to the channel a byte at a time, until a frame is complete.
    ///
    /// - Returns: how many bytes the frame has.
    @discardableResult
    func receiveFrame(until deadline: Deadline = Deadline()) throws -> Int {
        var count = 0
        repeat {
            guard let descriptor else { throw Failure("the channel is closed") }
            guard try descriptor.wait(for: POLLIN, until: deadline) != 0 else { throw Failure("no reply") }
            var byte: UInt8 = 0
            guard recv(descriptor.number, &byte, 1, 0) == 1 else { throw Failure("the channel has ended") }
            count += 1
            receive([byte])
        } while !received.isEmpty
        return count
    }

    /// Waits until the child has closed its end, and closes this one.
    func waitForEnd(until deadline: Deadline = Deadline()) throws {
        guard let descriptor else { return }
        // The end is reported whatever is waited for.
        guard try descriptor.wait(for: 0, until: deadline) != 0 else { throw Failure("the channel stays open") }
        close()
    }
}
