import CLinux
import CRUDPluginKit
import CRUDPluginThreads
import Glibc
import Synchronization

/// A thread with a connection of its own, which renews the lease, notices at once that the server has closed its
/// connection, chooses a server again until it succeeds, and answers doubt by raising the number of the lease. What it
/// finds goes to ``Availability``.
// `connection` and `choice` are the thread's alone once it runs; `start` and `stop` come before and after.
final class LeaseKeeper: @unchecked Sendable {
    private let availability: Availability
    private let lease: Lease
    private let choice: ServerChoice
    private var connection: Connection?
    /// Why there is no connection.
    private var cause = ""
    private var thread: pthread_t?
    private let isStopping = Atomic(false)

    /// How long the server may take to reply to a renewal.
    static let replyTimeoutMilliseconds: Int64 = 2500
    private static let pauses: [Int32] = [50, 100, 200, 400, 800, 1000]

    /// - Parameters:
    ///   - lease: the one that the caller has just acquired.
    ///   - connection: the keeper's from now on.
    init(_ availability: Availability, _ lease: Lease, _ choice: ServerChoice, _ connection: Connection) {
        self.availability = availability
        self.lease = lease
        self.choice = choice
        self.connection = connection
    }

    func start() throws(StorageFailure) {
        thread = BackgroundThread.start(named: "lease") { self.run() }
        if thread == nil { throw StorageFailure(.unavailable, "the system has no thread for the lease") }
    }

    /// Ends the thread and releases the lease.
    func stop() {
        isStopping.store(true, ordering: .releasing)
        availability.wake()
        if let thread { pthread_join(thread, nil) }
        // What fails here runs out by itself.
        if let connection, !connection.isBroken { try? lease.release(connection, Wait(milliseconds: 1000)) }
        lease.end()
        connection = nil
    }

    // MARK: The thread

    private var hasToStop: Bool { isStopping.load(ordering: .acquiring) }

    private func run() {
        var failures = 0
        while !hasToStop {
            do throws(StorageFailure) {
                guard try connection == nil ? choose() : renew() else { return }
                failures = 0
                awaitNews()
            } catch {
                // Perhaps only this connection was lost: then the next attempt follows at once.
                let isClosed = connection?.isBroken ?? false
                if connection != nil { cause = error.message }
                if isClosed, failures == 0 { availability.choosing() } else { availability.lost(error.message) }
                // What is still waiting for a standby, say, would keep a connection of the server's for long. It is
                // about the lease alone: nothing that was written depends on it.
                connection?.recover()
                connection = nil
                if !isClosed || failures > 0 { pause(Self.pauses[min(failures, Self.pauses.count - 1)]) }
                failures += 1
            }
        }
    }

    /// Chooses a server, and says whether the lease is still held there.
    private func choose() throws(StorageFailure) -> Bool {
        availability.choosing()
        let doubts = availability.question.doubts
        var isHeld = false
        var start: Int64 = 0
        let choice = try choice.choose(because: cause) { (connection) throws(StorageFailure) in
            start = Clock.boot
            isHeld = try lease.advance(connection, Wait(milliseconds: Self.replyTimeoutMilliseconds))
        }
        guard isHeld else {
            availability.takenOver()
            return false
        }
        connection = choice.connection
        availability.confirmed(doubts, choice.server, choice.failOver, until: start + Lease.certainty)
        return true
    }

    /// Renews the lease, and says whether it is still held. Where there is doubt it is answered by that.
    private func renew() throws(StorageFailure) -> Bool {
        guard let connection else { return true }
        let question = availability.question
        if question.mustChoose {
            cause = "connections to the same address lead to another server"
            self.connection = nil
            return try choose()
        }
        let wait = Wait(milliseconds: Self.replyTimeoutMilliseconds)
        let start = Clock.boot
        let isHeld = try question.isOpen ? lease.advance(connection, wait) : lease.renew(connection, wait)
        guard isHeld else {
            availability.takenOver()
            return false
        }
        if question.isOpen {
            availability.confirmed(question.doubts, until: start + Lease.certainty)
        } else {
            availability.renewed(until: start + Lease.certainty)
        }
        return true
    }

    /// Waits until it is time to renew, the server closes the connection, or another thread is in doubt.
    private func awaitNews() {
        guard let connection else { return }
        let end = Clock.monotonic + Lease.renewalInterval
        while !hasToStop, !availability.question.isOpen {
            let left = Int32(max(end - Clock.monotonic, 0) / 1_000_000)
            var interests = [
                pollfd(fd: connection.socket, events: Int16(POLLIN), revents: 0),
                pollfd(fd: availability.wakeup, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&interests, 2, left) > 0 else { return }
            if interests[1].revents != 0 { drainWakeup() }
            if interests[0].revents != 0, connection.hasEnded() {
                availability.choosing()
                cause = connection.ending
                self.connection = nil
                return
            }
        }
    }

    private func pause(_ milliseconds: Int32) {
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
