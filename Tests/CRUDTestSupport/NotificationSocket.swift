import Glibc
import Synchronization

/// The socket of a service manager for READY=1 and the like (sd_notify(3)).
package final class NotificationSocket: Sendable {
    package let path: String
    package let descriptor: Descriptor
    private let storage = Mutex<[[String]]>([])

    package init(at path: String) throws {
        self.path = path
        let descriptor = try Descriptor.datagramSocket()
        Files.remove(path)
        guard try UnixAddress.with(path, { bind(descriptor.number, $0, $1) }) == 0 else {
            throw Failure.system("bind \(path)")
        }
        self.descriptor = descriptor
    }

    /// Every `NAME=value` that has arrived so far, in order.
    package var received: [String] { Array(datagrams.joined()) }

    /// The datagrams that have arrived so far, each as its lines.
    package var datagrams: [[String]] {
        var datagram = [UInt8](repeating: 0, count: 8192)
        return storage.withLock { datagrams in
            while true {
                let count = recv(descriptor.number, &datagram, datagram.count, Int32(MSG_DONTWAIT))
                guard count > 0 else { return datagrams }
                let lines = String(decoding: datagram[..<count], as: UTF8.self).split(separator: "\n")
                datagrams.append(lines.map(String.init))
            }
        }
    }

    /// Waits until `condition` holds for the datagrams that have arrived; returns whether it does.
    package func wait(until deadline: Deadline = Deadline(), for condition: ([String]) -> Bool) throws -> Bool {
        while !condition(received) {
            if deadline.hasPassed { return false }
            _ = try descriptor.wait(for: POLLIN, until: deadline)
        }
        return true
    }
}
