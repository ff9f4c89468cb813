import CLinux
import CRUDPluginKit
import Glibc
import Synchronization

/// A thread with a connection of its own, which renews the lease, notices at once that the server has closed its
/// connection, and connects again until it succeeds. What it finds goes to ``Availability``.
///
/// With several daemons that write at once there is no lease, and it only watches the server.
// `connection` and `connected` are the thread's alone once it runs; `start` and `stop` come before and after.
final class LeaseKeeper: @unchecked Sendable {
    private let settings: ConnectionSettings
    private let availability: Availability
    private let lease: Lease?
    private var connection: Connection?
    private var thread = pthread_t()
    private let isStopping = Atomic(false)

    /// How long the server may take to reply to a renewal.
    private static let replyTimeoutMilliseconds: Int64 = 2500
    private static let pauses: [Int32] = [50, 100, 200, 400, 800, 1000]

    /// - Parameters:
    ///   - lease: the one that the caller has just acquired.
    ///   - connection: the keeper's from now on.
    init(_ settings: ConnectionSettings, _ availability: Availability, _ lease: Lease?, _ connection: Connection) {
        self.settings = settings
        self.availability = availability
        self.lease = lease
        self.connection = connection
    }

    func start() throws(StorageFailure) {
        let code = pthread_create(
            &thread, nil,
            { keeper in
                // Retained below.
                Unmanaged<LeaseKeeper>.fromOpaque(keeper!).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        guard code == 0 else {
            Unmanaged.passUnretained(self).release()
            throw StorageFailure(errno: code, "cannot start a thread")
        }
    }

    /// Ends the thread and releases the lease.
    func stop() {
        isStopping.store(true, ordering: .releasing)
        availability.suspect()
        pthread_join(thread, nil)
        // What fails here runs out by itself.
        if let connection, !connection.isBroken { try? lease?.release(connection, Wait(milliseconds: 1000)) }
        connection = nil
    }

    // MARK: The thread

    private var hasToStop: Bool { isStopping.load(ordering: .acquiring) }

    private func run() {
        clinux_name_thread("lease")
        var failures = 0
        while !hasToStop {
            do throws(StorageFailure) {
                guard try renew() else { return }
                failures = 0
                awaitNews(milliseconds: Int32(Lease.renewalInterval / 1_000_000))
            } catch {
                // Perhaps only this connection was lost: then the next attempt follows at once.
                let isClosed = connection?.isBroken ?? true
                if failures > 0 || !isClosed {
                    availability.lost(error.message)
                    awaitWakeup(milliseconds: Self.pauses[min(failures, Self.pauses.count - 1)])
                }
                // What is still waiting for a standby, say, would keep a connection of the server's for long.
                connection?.recover()
                connection = nil
                failures += 1
            }
        }
    }

    /// Returns whether to continue.
    private func renew() throws(StorageFailure) -> Bool {
        let connection = if let connection { connection } else { try Connection(settings) }
        self.connection = connection
        let wait = Wait(milliseconds: Self.replyTimeoutMilliseconds)
        let start = Clock.boot
        guard let lease else {
            try connection.query("SELECT 1", Parameters(), [], wait).check("ask the server")
            availability.confirmed(until: 0)
            return true
        }
        guard try lease.renew(connection, wait) else {
            availability.takenOver("another daemon has taken the schema over")
            return false
        }
        availability.confirmed(until: start + Lease.certainty)
        return true
    }

    /// Waits until it is time to renew, the server closes the connection, or somebody has lost theirs.
    private func awaitNews(milliseconds: Int32) {
        guard let connection else { return }
        var interests = [
            pollfd(fd: connection.socket, events: Int16(POLLIN), revents: 0),
            pollfd(fd: availability.wakeup, events: Int16(POLLIN), revents: 0),
        ]
        poll(&interests, 2, milliseconds)
        if interests[1].revents != 0 { drainWakeup() }
        if interests[0].revents != 0, connection.hasEnded() { self.connection = nil }
    }

    private func awaitWakeup(milliseconds: Int32) {
        // Those who lose their connections now bring no news.
        let end = Clock.monotonic + Int64(milliseconds) * 1_000_000
        while !hasToStop, Clock.monotonic < end {
            var interest = pollfd(fd: availability.wakeup, events: Int16(POLLIN), revents: 0)
            if poll(&interest, 1, Int32((end - Clock.monotonic) / 1_000_000 + 1)) > 0 { drainWakeup() }
        }
    }

    private func drainWakeup() {
        var count: UInt64 = 0
        eventfd_read(availability.wakeup, &count)
    }
}
