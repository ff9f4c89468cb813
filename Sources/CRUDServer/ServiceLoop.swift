import CRUDConfiguration
import CRUDCore
package import CRUDEventLoop
import CRUDModel
import CRUDPluginHost
import Glibc

/// One event loop of the daemon: its sessions, its readers, and the batches it has in backends' hands.
///
/// A turn executes what has come in; at its end each backend gets what the turn has gathered for it as one batch, every
/// session's replies go out in one write, and views of the data that have become stale are let go.
package final class ServiceLoop: TurnHandler {
    private(set) var service: Service
    /// The service's, at hand.
    // Not checked for exclusive access at run time, which a profile of reads shows: one thread uses it, and nothing that is
    // called during an access comes back to it.
    @exclusivity(unchecked) private(set) var limits: Configuration.Limits
    let reply = ReplyWriter()
    let mailbox: Mailbox
    let eventLoop: EventLoop
    /// Needs the loop itself, hence lazy.
    private(set) lazy var dispatcher = Dispatcher(
        loop: self, collections: CollectionTable(rules: service.configuration.collections, backends: service.backends))

    /// What all sessions of this loop hold together.
    let buffers: BufferBudget

    private let number: Int
    private var listeners: [Listener] = []
    private var acceptor: Acceptor?
    private var sessions: [ObjectIdentifier: Session] = [:]
    /// Sessions that are not read from until something makes room.
    private var pausedSessions: [Session] = []
    /// Sessions whose batch array has had its share of this turn.
    private var spentSessions: [Session] = []
    /// Counts turns, so that sessions know when a new one has begun.
    private(set) var turnNumber: UInt64 = 0
    /// Sessions in which a request waits for its turn.
    private var waitingSessions: [Session] = []

    private var assemblies: [BatchAssembly]
    private var readers: [BackendReader?]
    /// Needs the loop itself, hence lazy.
    private lazy var links = service.backends.map { ChildLinks(to: $0, of: self) }
    /// Holds that are not acknowledged before these lookups are over.
    private var holds: [(lookups: [ChildLink.Lookup], acknowledgement: Handover<Bool>)] = []
    private var submissions: [Submission] = []
    private var reloads: [ReloadRequest] = []
    private var reloadCount: UInt64 = 0

    private lazy var overdueTimer = Timer(on: eventLoop) { [unowned self] in answerOverdue() }
    private lazy var snapshotTimer = Timer(on: eventLoop) { [unowned self] in endSnapshots() }
    private lazy var idleTimer = Timer(on: eventLoop) { [unowned self] in closeIdle() }
    private lazy var drainTimer = Timer(on: eventLoop) { [unowned self] in
        hasGivenUp = !submissions.isEmpty
        eventLoop.stop()
    }

    /// Whether something was under way for too long when the daemon was to stop.
    private var hasGivenUp = false

    /// Whether the daemon is stopping: nothing new is taken up.
    private(set) var isDraining = false

    /// How long a stopping daemon waits for what is under way.
    private static let drainPatience = Duration.seconds(10)

    /// - Parameter number: from 0, different for each loop of the daemon.
    package init(_ service: Service, number: Int) throws(SystemCallError) {
        self.service = service
        limits = service.configuration.limits
        self.number = number
        eventLoop = try EventLoop()
        mailbox = Mailbox(waker: eventLoop.waker)
        buffers = BufferBudget(maximum: limits.bufferBytes / service.loopCount, loop: eventLoop)
        assemblies = service.backends.map(BatchAssembly.init)
        readers = Array(repeating: nil, count: service.backends.count)
    }

    /// Serves until it has been told to drain and has answered everything, on the calling thread; false if something
    /// could not be answered in time.
    package func run() -> Bool {
        watchForIdle()
        eventLoop.run(self)
        mailbox.close()
        // Nothing is looked up any more.
        for hold in holds { hold.acknowledgement.give(true) }
        return !hasGivenUp
    }

    /// The time of this turn.
    var now: Duration { eventLoop.now }

    /// When a request that comes in now has waited long enough.
    var deadline: Duration { now + limits.requestTimeout }

    // MARK: Turns

    package func woken() {
        for message in mailbox.take() {
            switch message {
            case .connection(let descriptor): adopt(descriptor)
            case .completed(let item): complete(item)
            case .hold(let hold, let acknowledgement):
                holds.append((begin(hold), acknowledgement))
            case .serve(let service, let acknowledgement):
                serve(service)
                acknowledgement.give(true)
            case .reloaded(let number, let outcome): finishReload(number, outcome)
            case .drain: drain()
            }
        }
        let spent = spentSessions
        spentSessions.removeAll()
        for session in spent { session.goOn() }
    }

    package func turnDidRead() {
        submitAssemblies()
    }

    private func submitAssemblies() {
        for index in assemblies.indices where !assemblies[index].isEmpty {
            for submission in assemblies[index].take() {
                submissions.append(submission)
                submit(submission, toBackendAt: index)
            }
            watchForOverdue()
        }
    }

    private func submit(_ submission: Submission, toBackendAt index: Int) {
        if case .reads(let batch) = submission.work, links[index].submit(batch) { return }
        submission.submit()
    }

    package func turnWillEnd() {
        turnNumber &+= 1
        if !spentSessions.isEmpty { eventLoop.waker.wake() }
        resumePaused()
        var holdsSnapshot = false
        for case .some(let reader) in readers {
            if reader.isStale { reader.endSnapshot() }
            holdsSnapshot = holdsSnapshot || reader.holdsSnapshot
        }
        if holdsSnapshot, !snapshotTimer.isScheduled { snapshotTimer.schedule(after: BackendReader.maximumSnapshotAge) }
        if !holds.isEmpty { acknowledgeHolds() }
        if isDraining, isQuiet { eventLoop.stop() }
    }

    private func endSnapshots() {
        for case .some(let reader) in readers { reader.endSnapshot() }
    }

    // MARK: Backends

    /// The loop's own reader for a collection; nil where a thread of the backend has to read.
    func reader(for collection: Collection) -> BackendReader? {
        guard collection.stored.isOpen, collection.backend.isReadOnLoops else { return nil }
        if let reader = readers[collection.backendIndex] { return reader }
        readers[collection.backendIndex] = collection.backend.reader(forLoop: number)
        return readers[collection.backendIndex]
    }

    /// This turn's batch of mutations for a collection's backend.
    func mutationBatch(for collection: Collection) -> MutationBatch {
        assemblies[collection.backendIndex].mutationBatch(mailbox)
    }

    /// This turn's batch of reads for a collection's backend.
    func readBatch(for collection: Collection) -> ReadBatch {
        assemblies[collection.backendIndex].readBatch(mailbox)
    }

    /// Adds work of one request alone, behind the mutations that have been added.
    func append(_ work: Submission.Work, for context: RequestContext) {
        assemblies[context.collection.backendIndex].append(work, for: context)
    }

    /// Whom to answer for the mutation that was added last.
    func append(mutation context: RequestContext) {
        assemblies[context.collection.backendIndex].append(mutation: context)
    }

    /// Whom to answer for the read that was added last.
    func append(read context: RequestContext) {
        assemblies[context.collection.backendIndex].append(read: context)
    }

    /// Answers those who asked for what has been done.
    func complete(_ item: WorkItem) {
        guard let index = submissions.firstIndex(where: { $0.item === item }) else { return }
        let submission = submissions.remove(at: index)
        // A thread of the backend may have seen a write that has not been answered yet; who is told of it must not be shown
        // by the loop what was before.
        if let place = service.backends.firstIndex(where: { $0 === submission.backend }) {
            readers[place]?.endSnapshot()
        }
        submission.answer(with: dispatcher)
        end(submission)
    }

    /// Takes a batch off the counts of its sessions, and has them take up what waited for it.
    private func end(_ submission: Submission) {
        for context in submission.contexts { context.session.ended(context) }
        for context in submission.contexts where context.session.hasEnded { context.session.goOn() }
    }

    // MARK: Reloads

    /// Has the configuration read again.
    func reload(from session: Session, to target: ReplyTarget, force: Bool, id: [UInt8]?, heldBytes: Int) {
        let number = reloadCount
        reloadCount += 1
        reloads.append(
            ReloadRequest(
                number: number, session: session, target: target, id: id, deadline: dispatcher.deadline,
                heldBytes: heldBytes))
        session.started(holding: heldBytes)
        if case .array(let array) = target { array.started() }
        watchForOverdue()
        service.reloader.reload(force: force) { [mailbox] in mailbox.post(.reloaded(number, $0)) }
    }

    private func finishReload(_ number: UInt64, _ outcome: Result<[String], CRUDError>) {
        guard let index = reloads.firstIndex(where: { $0.number == number }) else { return }
        let request = reloads.remove(at: index)
        dispatcher.answer(request, with: outcome)
        request.session.answered(to: request.target)
        request.session.ended(holding: request.heldBytes)
        request.session.goOn()
    }

    /// Asks nothing more of what is about to be exchanged; answers the lookups that are under way by links, which backends
    /// do not know of.
    private func begin(_ hold: CollectionHold) -> [ChildLink.Lookup] {
        submitAssemblies()
        for (index, backend) in service.backends.enumerated() where hold.covers(backend) {
            readers[index]?.endSnapshot()
            readers[index] = nil
        }
        for links in links { links.handBack() }
        dispatcher.collections.begin(hold)
        return links.flatMap(\.lookups)
    }

    private func acknowledgeHolds() {
        holds.removeAll { lookups, acknowledgement in
            guard lookups.allSatisfy(\.isOver) else { return false }
            acknowledgement.give(true)
            return true
        }
    }

    /// Goes over to another configuration. Sessions and what they have under way stay.
    private func serve(_ next: Service) {
        submitAssemblies()
        let places = next.backends.map { backend in service.backends.firstIndex { $0 === backend } }
        readers = places.map { $0.flatMap { readers[$0] } }
        links = zip(next.backends, places).map { $1.map { links[$0] } ?? ChildLinks(to: $0, of: self) }
        assemblies = next.backends.map(BatchAssembly.init)
        service = next
        limits = next.configuration.limits
        buffers.maximum = limits.bufferBytes / next.loopCount
        dispatcher.serve(next)
        for session in sessions.values {
            session.authority = Authority(of: session.peer, by: next.configuration.access)
        }
        watchForIdle()
        for session in waitingSessions { session.goOn() }
    }

    // MARK: Overdue requests

    /// A request waits in this session.
    func isWaiting(_ session: Session) {
        if !waitingSessions.contains(where: { $0 === session }) { waitingSessions.append(session) }
        watchForOverdue()
    }

    private func watchForOverdue() {
        guard !overdueTimer.isScheduled else { return }
        overdueTimer.schedule(after: min(.seconds(1), limits.requestTimeout / 4))
    }

    private func answerOverdue() {
        for submission in submissions where submission.giveUp(at: now, with: dispatcher) {
            submissions.removeAll { $0 === submission }
            end(submission)
        }
        for session in waitingSessions { session.expireWaiting() }
        waitingSessions.removeAll { !$0.hasWaiting }
        for request in reloads where request.deadline <= now {
            finishReload(request.number, .failure(Dispatcher.reloadOverdue))
        }
        if !submissions.isEmpty || !waitingSessions.isEmpty || !reloads.isEmpty { watchForOverdue() }
    }

    // MARK: Sessions

    /// Takes over a connection, or turns it away.
    func adopt(_ descriptor: CInt) {
        guard let peer = Peer(of: descriptor) else {
            return turnAway(descriptor, CRUDError(.permissionDenied, "the kernel does not say who you are"))
        }
        let authority = Authority(of: peer, by: service.configuration.access)
        do throws(CRUDError) {
            try service.sessions.enter(uid: peer.uid, isAdmin: authority.isAdmin)
        } catch {
            return turnAway(descriptor, error)
        }
        let session = Session(peer: peer, authority: authority, loop: self)
        do throws(SystemCallError) {
            try session.serve(descriptor, on: eventLoop)
            sessions[ObjectIdentifier(session)] = session
        } catch {
            service.sessions.leave(uid: peer.uid)
            turnAway(descriptor, CRUDError(.unavailable, "the daemon has no room for another session"))
        }
    }

    private func turnAway(_ descriptor: CInt, _ error: CRUDError) {
        reply.error(error)
        reply.send(to: descriptor)
        close(descriptor)
    }

    func hasClosed(_ session: Session) {
        sessions[ObjectIdentifier(session)] = nil
        service.sessions.leave(uid: session.peer.uid)
    }

    private func watchForIdle() {
        if let idle = limits.idleTimeout { idleTimer.schedule(after: idle / 4) } else { idleTimer.cancel() }
    }

    private func closeIdle() {
        guard let idle = limits.idleTimeout else { return }
        for session in sessions.values where session.isQuiet && now - session.lastActivity >= idle { session.finish() }
        watchForIdle()
    }

    /// Has a session go on in the next turn with what it has taken up.
    func goOnNextTurn(_ session: Session) {
        spentSessions.append(session)
    }

    // MARK: Back-pressure

    /// A session has stopped being read from.
    func hasPaused(_ session: Session) {
        pausedSessions.append(session)
    }

    private func resumePaused() {
        guard !pausedSessions.isEmpty else { return }
        pausedSessions.removeAll { $0.resumeIfPossible() }
    }

    // MARK: Listening

    /// Accepts connections at these sockets until the daemon stops.
    func listen(at descriptors: [CInt], _ acceptor: Acceptor) throws(SystemCallError) {
        for descriptor in descriptors {
            listeners.append(try Listener(descriptor, on: eventLoop, handler: acceptor))
        }
        self.acceptor = acceptor
    }

    /// Does something again and again.
    func every(_ interval: Duration, _ action: @escaping () -> Void) {
        let timer = Timer(on: eventLoop) { [unowned self] in
            action()
            every(interval, action)
        }
        timer.schedule(after: interval)
    }

    // MARK: The end

    private func drain() {
        guard !isDraining else { return }
        isDraining = true
        for listener in listeners { listener.close() }
        drainTimer.schedule(after: Self.drainPatience)
    }

    /// Whether everything that was taken up has been answered, and every answer been sent.
    private var isQuiet: Bool { submissions.isEmpty && sessions.values.allSatisfy(\.isQuiet) }
}
