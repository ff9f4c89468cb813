import CRUDConfiguration
import CRUDEventLoop
import CRUDModel
import CRUDPlacement
import CRUDPluginCalls
import CRUDStorage
import CRUDThreads
import Glibc
import Logging

/// One event loop of the daemon, and what it is composed of: its sessions, the handlers of their requests, and its
/// clients of the backends.
///
/// An iteration executes what has come in; at its end each backend gets what the iteration has gathered for it as one
/// batch, every session's replies go out in one write, and snapshots that have become stale are released.
final class ServiceLoop: IterationHandler, LoopContext {
    let mailbox: Mailbox
    let number: Int
    let deliver: @Sendable (WorkItem) -> Void
    private let eventLoop: EventLoop
    private let state: LoopState
    private let sessions: SessionSet
    private let router: Router
    private let collections: CollectionDirectory
    private let delegated: DelegatedCalls
    /// One for each backend, in the order of the configuration.
    private var clients: [BackendClient] = []
    /// Those of backends that are no longer served, until what they have in flight is done.
    private var retired: [BackendClient] = []
    private var listeners: [Listener] = []
    /// To be resolved when these clients are quiescent.
    private var quiescing: [(clients: [BackendClient], isDone: OneShot<[Backend]>)] = []

    private lazy var overdueTimer = Timer(on: eventLoop) { [unowned self] in expireOverdue() }
    private lazy var snapshotTimer = Timer(on: eventLoop) { [unowned self] in
        for client in clients { client.store.releaseSnapshot() }
    }
    private lazy var idleTimer = Timer(on: eventLoop) { [unowned self] in closeIdleSessions() }
    private lazy var drainTimer = Timer(on: eventLoop) { [unowned self] in continueDraining() }
    private lazy var searchTimer = Timer(on: eventLoop) { [unowned self] in endSearches() }
    private lazy var heartbeatTimer = Timer(on: eventLoop) { [unowned self] in beat() }

    let heartbeat = Watchdog.Heartbeat()
    /// When a draining loop no longer waits for what is in flight.
    private var drainDeadline = Duration.zero
    /// Whether no peer can send any more, as the daemon is about to stop.
    private var hasEndedInput = false
    /// Whether something was in flight for too long when the daemon was to stop.
    private var hasGivenUp = false

    /// How long a draining loop waits for peers to read their replies, once nothing else is to be done.
    private static let readTimeout = Duration.seconds(10)

    /// How long a draining loop waits for searches, which another daemon can be asked for again.
    private static let searchTimeout = Duration.seconds(1)
    /// How soon it ends those that are executed again all the same, as their pages took more room.
    private static let searchPause = Duration.milliseconds(50)

    private let heartbeatInterval: Duration?

    /// - Parameters:
    ///   - number: from 0, different for each loop of the daemon.
    ///   - heartbeatInterval: how often the watchdog is to be told; nil: there is none.
    init(
        _ service: Service, _ inspector: Inspector, number: Int, heartbeatInterval: Duration?
    ) throws(SystemCallError) {
        self.number = number
        self.heartbeatInterval = heartbeatInterval
        eventLoop = try EventLoop()
        mailbox = Mailbox(waker: eventLoop.waker)
        deliver = { [mailbox] in mailbox.post(.completed($0)) }
        state = LoopState(service, on: eventLoop, number: number)
        let control = service.control
        collections = CollectionDirectory(
            CollectionTable(rules: service.rules, clients: []) { control.serving($0, $1) })
        delegated = DelegatedCalls(mailbox)
        router = Router(state, collections, delegated, inspector, mailbox)
        sessions = SessionSet(state, handler: router)
        serve(service)
        beat()
    }

    /// Serves until it has been told to drain and has finished every request, on the calling thread; false if one could
    /// not be finished in time.
    func run() -> Bool {
        eventLoop.run(self)
        mailbox.close()
        // Nothing is read any more.
        resolveQuiescing { _ in true }
        return !hasGivenUp
    }

    // MARK: Iterations

    func woken() {
        for message in mailbox.take() {
            switch message {
            case .connection(let descriptor): sessions.adopt(descriptor)
            case .completed(let item): complete(item)
            case .decoded(let result): result.finish()
            case .quiesce(let quiesced, let isDone): quiesce(quiesced, isDone)
            case .serve(let service, let isDone):
                serve(service)
                isDone.resolve(true)
            case .serveQuiesced(let isDone):
                serveQuiesced()
                isDone.resolve(true)
            case .delegated(let number, let outcome): delegated.finish(number, outcome)
            case .measure(let measurement): measurement.resolve(measure())
            case .describeSessions(let descriptions): descriptions.resolve(sessions.descriptions)
            case .closeSession(let number, let isClosed): isClosed.resolve(sessions.closeSession(number))
            case .changed: state.followers.noteChange()
            case .drain: drain()
            }
        }
    }

    func inputWasRead() {
        state.followers.resume()
        sessions.resume()
        for client in clients { client.flush() }
        if !overdueTimer.isScheduled, hasPending {
            overdueTimer.schedule(after: min(.milliseconds(40), state.limits.requestTimeout / 16))
        }
    }

    func iterationWillEnd() {
        state.meter.iterationWillEnd(now)
        if sessions.iterationWillEnd() { wake() }
        var holdsSnapshot = false
        for client in clients {
            client.store.releaseStaleSnapshot()
            holdsSnapshot = holdsSnapshot || client.store.holdsSnapshot
        }
        if holdsSnapshot, !snapshotTimer.isScheduled {
            snapshotTimer.schedule(after: SnapshotReader.maximumSnapshotAge)
        }
        if !quiescing.isEmpty { resolveQuiescing { $0.allSatisfy(\.isQuiescent) } }
        if state.isDraining, sessions.isIdle, areClientsIdle { stopAfterInput() }
    }

    /// Stops once every request that was sent has its reply: a peer that cannot send any more knows that what it has
    /// not sent was not executed.
    private func stopAfterInput() {
        guard !sessions.isEmpty else { return eventLoop.stop() }
        guard !hasEndedInput else { return }
        hasEndedInput = true
        sessions.endInput()
    }

    /// Whether any request is in flight or waits.
    private var hasPending: Bool {
        sessions.hasWaiting || delegated.hasPending || !areClientsIdle
    }

    private var areClientsIdle: Bool { clients.allSatisfy(\.isIdle) && retired.allSatisfy(\.isIdle) }

    private func complete(_ item: WorkItem) {
        item.submitter?.complete(item)
        if !retired.isEmpty { retired.removeAll(where: \.isIdle) }
    }

    private func expireOverdue() {
        expire(at: now)
    }

    /// Fails what has waited too long at a time of the loop's clock.
    private func expire(at now: Duration) {
        for client in clients { client.expire(at: now) }
        for client in retired { client.expire(at: now) }
        retired.removeAll(where: \.isIdle)
        sessions.expireWaiting(at: now)
        delegated.expire(at: now)
    }

    // MARK: LoopContext

    var now: Duration { eventLoop.now }

    var inputCount: UInt64 { sessions.inputCount }

    func wake() { eventLoop.waker.wake() }

    func openStream(_ descriptor: CInt, for channel: LoopChannel) -> (any ChannelTransport)? {
        do throws(SystemCallError) {
            return try StreamTransport(descriptor, for: channel, on: eventLoop)
        } catch {
            close(descriptor)
            return nil
        }
    }

    private func measure() -> LoopMeasurement {
        var measurement = LoopMeasurement(requests: state.meter.counts)
        measurement.followers = state.followers.count
        sessions.measure(into: &measurement)
        for (name, count) in collections.table.requestCounts { measurement.collections[name] = count }
        return measurement
    }

    // MARK: Reloads

    /// Asks nothing more of what is about to be exchanged.
    private func quiesce(_ quiesced: QuiescedCollections, _ isDone: OneShot<[Backend]>) {
        let concerned = collections.table.quiesce(quiesced)
        state.followers.endQuiesced()
        for client in concerned { client.quiesce() }
        quiescing.append((concerned, isDone))
    }

    private func resolveQuiescing(where isDone: ([BackendClient]) -> Bool) {
        quiescing.removeAll { clients, reply in
            guard isDone(clients) else { return false }
            reply.resolve(clients.map(\.backend))
            return true
        }
    }

    /// Follows another configuration, or the first. Sessions and their requests in flight stay.
    private func serve(_ service: Service) {
        let former = clients
        clients = service.backends.map { backend in
            former.first { $0.backend === backend } ?? BackendClient(backend, loop: self)
        }
        for client in clients {
            client.backend.feeds.register(loop: number) { [mailbox] in mailbox.post(.changed) }
        }
        retired += former.filter { client in !client.isIdle && !clients.contains { $0 === client } }
        collections.table.serve(rules: service.rules, clients: clients)
        state.serve(service)
        router.serve()
        sessions.serve(service)
        state.followers.endUnserved()
        closeIdleSessions()
    }

    /// Resumes the requests of what has been quiesced, in the places where it is now.
    private func serveQuiesced() {
        collections.table.serveQuiesced()
        sessions.resumeQuiesced()
        state.followers.endUnserved()
    }

    // MARK: Timers

    private func closeIdleSessions() {
        guard let timeout = state.limits.idleTimeout else { return idleTimer.cancel() }
        sessions.closeIdle(after: timeout)
        idleTimer.schedule(after: timeout / 4)
    }

    /// Tells the watchdog that the loop is alive.
    private func beat() {
        heartbeat.beat()
        if let interval = heartbeatInterval { heartbeatTimer.schedule(after: interval) }
    }

    // MARK: Listening

    /// Accepts connections at these sockets until the daemon stops.
    func listen(at descriptors: [CInt], _ acceptor: Acceptor) throws(SystemCallError) {
        for descriptor in descriptors {
            listeners.append(try Listener(descriptor, on: eventLoop, handler: acceptor))
        }
    }

    /// Accepts nothing more, and waits for what is in flight for as long as a request may take, but not for searches.
    private func drain() {
        guard !state.isDraining else { return }
        state.isDraining = true
        state.followers.endAll()
        delegated.drain()
        for listener in listeners { listener.close() }
        drainDeadline = now + max(state.limits.requestTimeout, Self.readTimeout)
        drainTimer.schedule(after: Self.readTimeout)
        searchTimer.schedule(after: min(Self.searchTimeout, state.limits.requestTimeout))
    }

    private func endSearches() {
        state.hasEndedSearches = true
        for client in clients + retired { client.endSearches() }
        guard !areClientsIdle else { return }
        searchTimer.schedule(after: Self.searchPause)
    }

    private func continueDraining() {
        guard now >= drainDeadline || !sessions.hasRequests && areClientsIdle else {
            return drainTimer.schedule(after: .seconds(1))
        }
        hasGivenUp = !areClientsIdle
        for client in clients + retired where !client.isIdle {
            state.service.logger.critical("backend \(client.backend.name) has not finished its requests in time")
        }
        // Everybody gets a reply; this iteration sends it.
        expire(at: DelegatedCalls.end)
        eventLoop.stop()
    }
}
