import CRUDConfiguration
import CRUDEventLoop
import CRUDModel
import CRUDStorage
import Glibc

/// The sessions of one event loop, and which of them wait for what.
final class SessionSet {
    let loop: LoopState
    /// What all of them hold together.
    let buffers: BufferBudget
    let parser: FrameParser
    /// What executes their calls.
    let handler: any CallHandler
    /// Counts iterations, so that sessions know when a new one has begun.
    // Not checked for exclusive access at run time, for every frame asks; one thread uses it.
    @exclusivity(unchecked) private(set) var iteration: UInt64 = 0

    private var sessions: [ObjectIdentifier: Session] = [:]
    /// Those that are not read from until something makes room.
    private var paused: [Session] = []
    /// Those in which a request waits for earlier ones.
    private var waiting: [Session] = []
    /// Those that have something to resume in this iteration.
    private var resumable: [Session] = []
    /// Those whose batch array has had its share of this iteration.
    private var postponed: [Session] = []

    init(_ loop: LoopState, handler: any CallHandler) {
        self.loop = loop
        self.handler = handler
        buffers = BufferBudget(maximum: loop.bufferBytes, loop: loop.eventLoop)
        parser = FrameParser(loop.limits)
    }

    /// Follows another configuration. Sessions and their requests in flight stay.
    func serve(_ service: Service) {
        buffers.maximum = loop.bufferBytes
        parser.serve(loop.limits)
        for session in sessions.values {
            session.authority = Authority(of: session.peer, by: service.configuration.access)
        }
        // What was quiesced is not any more.
        for session in waiting { resumeLater(session) }
    }

    // MARK: Coming and going

    /// Takes over a connection, or rejects it.
    func adopt(_ descriptor: CInt) {
        guard let peer = Peer(of: descriptor) else {
            return reject(descriptor, CRUDError(.permissionDenied, "the kernel does not say who you are"))
        }
        let authority = Authority(of: peer, by: loop.service.configuration.access)
        do throws(CRUDError) {
            try loop.service.sessions.enter(uid: peer.uid, isAdmin: authority.isAdmin)
        } catch {
            return reject(descriptor, error)
        }
        let session = Session(peer: peer, authority: authority, in: self)
        do throws(SystemCallError) {
            try session.serve(descriptor)
            sessions[ObjectIdentifier(session)] = session
        } catch {
            loop.service.sessions.leave(uid: peer.uid)
            reject(descriptor, CRUDError(.unavailable, "the daemon has no room for another session"))
        }
    }

    private func reject(_ descriptor: CInt, _ error: CRUDError) {
        StreamBuffer.send(error, overRejected: descriptor)
        close(descriptor)
    }

    func hasClosed(_ session: Session) {
        sessions[ObjectIdentifier(session)] = nil
        loop.service.sessions.leave(uid: session.peer.uid)
    }

    /// Closes those for which nothing has come or gone for so long.
    func closeIdle(after time: Duration) {
        for session in sessions.values where session.isIdle(for: time) { session.finish() }
    }

    /// Whether every request that has come is done, and every reply has been sent.
    var isIdle: Bool { sessions.values.allSatisfy(\.isIdle) }

    // MARK: Waiting

    func hasPaused(_ session: Session) { paused.append(session) }

    /// A request of this session waits for earlier ones.
    func hasWaiting(_ session: Session) {
        if !waiting.contains(where: { $0 === session }) { waiting.append(session) }
    }

    /// Whether any request waits for earlier ones of its session.
    var hasWaiting: Bool { !waiting.isEmpty }

    /// Fails the requests that have waited too long.
    func expireWaiting() {
        for session in waiting { session.expireWaiting() }
        waiting.removeAll { !$0.hasWaiting }
    }

    /// Has a session start, before this iteration ends, what has waited for requests that are done now.
    func resumeLater(_ session: Session) {
        guard !session.isToBeResumed else { return }
        session.isToBeResumed = true
        resumable.append(session)
    }

    /// Has a session resume its batch array in the next iteration.
    func resumeNextIteration(_ session: Session) { postponed.append(session) }

    /// Resumes the sessions that have something to resume. What they start may be done at once.
    func resume() {
        while !resumable.isEmpty {
            let sessions = resumable
            resumable.removeAll(keepingCapacity: true)
            for session in sessions { session.resume() }
        }
    }

    /// - Returns: whether another iteration has to follow at once.
    func iterationWillEnd() -> Bool {
        iteration &+= 1
        for session in postponed { resumeLater(session) }
        postponed.removeAll(keepingCapacity: true)
        if !paused.isEmpty { paused.removeAll { $0.resumeReadingIfPossible() } }
        return !resumable.isEmpty
    }
}
