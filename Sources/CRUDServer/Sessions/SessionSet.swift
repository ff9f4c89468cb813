import CRUDConfiguration
import CRUDEventLoop
import CRUDModel
import CRUDStorage
import Glibc
import Logging

/// The sessions of one event loop, and which of them wait for what.
final class SessionSet {
    let loop: LoopState
    /// What all of them hold together.
    let buffers: BufferLedger
    let parser: FrameParser
    /// What executes their calls.
    let handler: any CallHandler
    /// Counts iterations, so that sessions know when a new one has begun.
    // Not checked for exclusive access at run time, for every frame asks; one thread uses it.
    @exclusivity(unchecked) private(set) var iteration: UInt64 = 0

    /// Counts what sessions have received.
    // As above.
    @exclusivity(unchecked) var inputCount: UInt64 = 0

    /// What a session may wait for.
    struct Lists: OptionSet {
        let rawValue: UInt8
        /// Something makes room.
        static let room = Lists(rawValue: 1)
        /// Something of it may be overdue.
        static let overdue = Lists(rawValue: 2)
        /// It has something to resume in this iteration.
        static let resumable = Lists(rawValue: 4)
        /// Its batch array has had its share of this iteration.
        static let postponed = Lists(rawValue: 8)
    }

    private var sessions: [ObjectIdentifier: Session] = [:]
    /// What sessions that are closed have received and sent.
    private var closedReceivedBytes: UInt64 = 0
    private var closedSentBytes: UInt64 = 0
    /// The members of the lists, each once.
    private var room: [Session] = []
    private var overdue: [Session] = []
    private var resumable: [Session] = []
    private var postponed: [Session] = []
    /// Counts the passes over those that wait for room.
    private var roomPass: UInt64 = 0

    init(_ loop: LoopState, handler: any CallHandler) {
        self.loop = loop
        self.handler = handler
        buffers = BufferLedger(maximum: loop.bufferBytes)
        parser = FrameParser(loop.limits)
    }

    /// Follows another configuration. Sessions and their requests in flight stay.
    func serve(_ service: Service) {
        buffers.maximum = loop.bufferBytes
        parser.serve(loop.limits)
        for session in sessions.values {
            session.authority = Authority(of: session.peer, by: service.configuration.access, service.rates)
        }
        resumeQuiesced()
    }

    /// What was quiesced is not any more.
    func resumeQuiesced() {
        for session in overdue { add(session, to: .resumable) }
    }

    // MARK: Coming and going

    /// Takes over a connection, or rejects it.
    func adopt(_ descriptor: CInt) {
        guard let peer = Peer(of: descriptor) else {
            return reject(descriptor, CRUDError(.permissionDenied, "the kernel does not say who you are"))
        }
        let authority = Authority(of: peer, by: loop.service.configuration.access, loop.service.rates)
        let number: Int
        do throws(CRUDError) {
            number = try loop.service.sessions.enter(uid: peer.uid, isAdmin: authority.isAdmin)
        } catch {
            logRefusal(of: peer, error.message)
            return reject(descriptor, error)
        }
        let session = Session(number, peer: peer, authority: authority, in: self)
        do throws(SystemCallError) {
            try session.serve(descriptor)
            sessions[ObjectIdentifier(session)] = session
            loop.service.sessions.noteOpened()
            session.debug("connected")
        } catch {
            logRefusal(of: peer, "\(error)")
            loop.service.sessions.leave(uid: peer.uid)
            reject(descriptor, CRUDError(.unavailable, "the daemon has no room for another session"))
        }
    }

    private func logRefusal(of peer: Peer, _ reason: String) {
        guard let more = loop.refusalLimit.admit(at: loop.now) else { return }
        loop.service.logger.notice(
            "a connection of uid \(peer.uid) is refused: \(reason)\(more)", metadata: ["uid": "\(peer.uid)"])
    }

    /// Closes a session for an administrator; false if there is none with that number.
    func closeSession(_ number: Int) -> Bool {
        guard let session = sessions.values.first(where: { $0.number == number }) else { return false }
        session.debug("closed by an administrator")
        session.closingDeadline = loop.now + Self.closingTimeout
        session.finish()
        session.state.stream?.discardInput()
        session.endFollowing()
        add(session, to: .overdue)
        return true
    }

    /// How long the peer of a session that an administrator has closed may take to read its replies.
    private static let closingTimeout = Duration.seconds(5)

    private func reject(_ descriptor: CInt, _ error: CRUDError) {
        loop.service.sessions.noteRefused()
        StreamBuffer.send(error, overRejected: descriptor)
        close(descriptor)
    }

    func hasClosed(_ session: Session, _ stream: Stream) {
        closedReceivedBytes &+= stream.receivedBytes
        closedSentBytes &+= stream.sentBytes
        session.debug("closed")
        sessions[ObjectIdentifier(session)] = nil
        loop.service.sessions.leave(uid: session.peer.uid)
    }

    /// Lets no peer send any more. The sessions end when they have read, and replied to, what was sent before.
    func endInput() {
        for session in sessions.values { session.state.stream?.endInput() }
    }

    var isEmpty: Bool { sessions.isEmpty }

    /// Closes those for which nothing has come or gone for so long.
    func closeIdle(after time: Duration) {
        for session in sessions.values where session.isIdle(for: time) { session.finish() }
    }

    // MARK: Inspection

    var descriptions: [SessionDescription] { sessions.values.map(\.description) }

    func measure(into measurement: inout LoopMeasurement) {
        measurement.heldBytes = buffers.held
        measurement.receivedBytes = closedReceivedBytes
        measurement.sentBytes = closedSentBytes
        for session in sessions.values {
            measurement.receivedBytes &+= session.state.stream?.receivedBytes ?? 0
            measurement.sentBytes &+= session.state.stream?.sentBytes ?? 0
        }
    }

    /// Whether any request that has come is not done.
    var hasRequests: Bool { sessions.values.contains(where: \.hasRequests) }

    /// Whether every request that has come is done, and every reply has been sent.
    var isIdle: Bool { sessions.values.allSatisfy(\.isIdle) }

    // MARK: Waiting

    /// Puts a session on lists, unless it is there.
    func add(_ session: Session, to lists: Lists) {
        let missing = lists.subtracting(session.lists)
        guard !missing.isEmpty else { return }
        session.lists.formUnion(missing)
        if missing.contains(.room) { room.append(session) }
        if missing.contains(.overdue) { overdue.append(session) }
        if missing.contains(.resumable) { resumable.append(session) }
        if missing.contains(.postponed) { postponed.append(session) }
    }

    /// Whether anything waits that can be overdue.
    var hasWaiting: Bool { !overdue.isEmpty }

    /// Ends what has waited too long.
    func expireWaiting(at now: Duration) {
        for session in overdue { session.expireWaiting(at: now) }
        overdue.removeAll { session in
            guard !session.hasWaiting else { return false }
            session.lists.remove(.overdue)
            return true
        }
    }

    /// Resumes the sessions that have something to resume. What they start may be done at once.
    func resume() {
        while !resumable.isEmpty {
            let sessions = resumable
            resumable.removeAll(keepingCapacity: true)
            for session in sessions {
                session.lists.remove(.resumable)
                session.resume()
            }
        }
    }

    /// Lets those continue that wait for room and find it now. Of one user, the first that does not keeps those behind
    /// it waiting for more than each session has, lest it wait for ever; but not the one that may exceed the user's
    /// share, for whose end it waits.
    private func grantRoom() {
        guard !room.isEmpty else { return }
        roomPass += 1
        let waiting = room
        room.removeAll(keepingCapacity: true)
        for session in waiting {
            session.lists.remove(.room)
            let user = session.account.user
            let isBehind = user.lastBlockedPass == roomPass && !session.account.isOverdrawn
            let result = session.resumeIfThereIsRoom(isBehind: isBehind)
            if result == .withheldByUser { user.lastBlockedPass = roomPass }
            if result != .available { add(session, to: .room) }
        }
    }

    /// - Returns: whether another iteration has to follow at once.
    func iterationWillEnd() -> Bool {
        iteration &+= 1
        for session in postponed {
            session.lists.remove(.postponed)
            add(session, to: .resumable)
        }
        postponed.removeAll(keepingCapacity: true)
        grantRoom()
        return !resumable.isEmpty
    }
}
