import CRUDTestSupport
import Synchronization

@testable import CRUDStorage

/// An event loop whose iterations are the test's.
final class TestLoop: LoopContext {
    let number: Int
    var inputCount: UInt64 = 0
    var now = Duration.zero
    let deliver: @Sendable (WorkItem) -> Void
    /// How often it was asked for another iteration.
    private(set) var wakeUps = 0
    private(set) var transports: [SocketTransport] = []
    private let delivered: Inbox<WorkItem>

    init(number: Int = 0) throws {
        self.number = number
        let delivered = try Inbox<WorkItem>()
        self.delivered = delivered
        deliver = { delivered.put($0) }
    }

    func wake() { wakeUps += 1 }

    func openStream(_ descriptor: CInt, for channel: LoopChannel) -> (any ChannelTransport)? {
        let transport = SocketTransport(owning: descriptor, for: channel)
        transports.append(transport)
        return transport
    }

    /// Waits for so many items and has the client complete them in the order in which they were delivered.
    func complete(_ count: Int = 1, by client: BackendClient) throws {
        for _ in 0..<count { client.complete(try delivered.take()) }
    }

    /// Waits for the end of all channels, and forgets them.
    func removeTransports() throws {
        for transport in transports { try transport.waitForEnd() }
        transports.removeAll()
    }

    /// How many items have been delivered and not completed.
    var deliveredCount: Int { delivered.count }
}
