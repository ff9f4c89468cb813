import CRUDConfiguration
import CRUDEventLoop
import CRUDModel
import CRUDStorage

// What waits: for earlier requests, and for room.

extension Session {
    /// Charges what the stream buffers.
    func chargeStream() {
        account.chargeBuffered(state.inputBytes + outputBytes)
    }

    /// What is still to be sent.
    var outputBytes: Int { state.stream?.pendingOutputBytes ?? 0 }

    func charge(requests: Int, bytes: Int) {
        state.requestsInFlight += requests
        // The reply to what is given back is charged before: else the session would seem to hold nothing for a moment,
        // and one after the other of its user's could exceed the share.
        if bytes < 0 { chargeStream() }
        account.charge(bytes)
    }

    /// Charges a request that waits, or with −1 one that no longer does.
    private func chargeWaiting(_ request: WaitingRequest, _ change: Int) {
        charge(requests: change, bytes: change * request.text.count)
        account.wait(change * request.text.count)
    }

    /// Whether so many bytes more may be held for requests that have been accepted.
    func room(for bytes: Int) -> SessionAccount.Room {
        let output = outputBytes
        if account.isModest(with: bytes, output: output) { return .available }
        chargeStream()
        return account.room(for: bytes, replacing: 0, output: output, maximum: loop.limits.sessionBytes)
    }

    /// The same for a frame, which waits behind the requests that wait; those that follow may hold much for long.
    ///
    /// - Parameter input: what has been charged for it already, as input.
    func room(forFrame bytes: Int, replacing input: Int) -> SessionAccount.Room {
        let output = outputBytes
        if account.isModest(with: bytes, output: output) { return .available }
        chargeStream()
        return account.room(
            for: bytes, replacing: input, output: output, besides: state.followerBytes,
            maximum: loop.limits.sessionBytes)
    }

    func hasRoom(for bytes: Int) -> Bool { room(for: bytes) == .available }

    /// Whether the session's output may be that long, a reply that is being written included.
    func hasRoom(forOutput output: Int) -> Bool {
        account.chargeBuffered(state.inputBytes + output)
        return account.room(for: 0, replacing: 0, output: output, maximum: .max) == .available
    }

    /// Whether another frame may be accepted; parameters as of ``room(forFrame:replacing:)``.
    func canAccept(_ length: Int, replacing input: Int) -> Bool {
        state.array == nil && state.requestsInFlight < loop.limits.inflightPerSession
            && room(forFrame: length, replacing: input) == .available
    }

    /// Is not read from until there is room.
    func awaitRoom(for bytes: Int) {
        state.neededBytes = max(bytes, 1)
        state.stream?.pause()
        sessions.add(self, to: .room)
    }

    /// Asks again for the room that requests, and then frames, wait for.
    ///
    /// - Parameter isBehind: whether another session of the user waits for room before it, so that it gets none but
    ///   what every session has.
    /// - Returns: whether the session still waits, and if so, who has to make room.
    func resumeIfThereIsRoom(isBehind: Bool) -> SessionAccount.Room {
        var result = SessionAccount.Room.available
        if let bytes = bytesNeededByRequests {
            result = bytes > 0 ? room(isBehind, for: bytes) { room(for: bytes) } : .available
            if result == .available { sessions.add(self, to: .resumable) }
        }
        guard result == .available, let stream = state.stream, state.neededBytes > 0 else { return result }
        guard state.array == nil, state.requestsInFlight < loop.limits.inflightPerSession else {
            return .withheldBySession
        }
        let bytes = state.neededBytes
        result = room(isBehind, for: bytes) { room(forFrame: bytes, replacing: state.inputBytes) }
        guard result == .available else { return result }
        if !state.isBehind {
            // The time that the frame has waited is not its peer's.
            state.partialFrame = PartialFrame(deadline: loop.deadline, grantedBytes: state.neededBytes)
            state.inputBytes = max(state.inputBytes, state.neededBytes)
            chargeStream()
        }
        state.neededBytes = 0
        stream.resume()
        return .available
    }

    /// What `room` says, by an overdraft if need be.
    private func room(
        _ isBehind: Bool, for bytes: Int, _ room: () -> SessionAccount.Room
    ) -> SessionAccount.Room {
        if isBehind { return account.isModest(with: bytes, output: outputBytes) ? .available : .withheldByUser }
        if room() == .withheldByUser { account.overdraw() }
        return room()
    }

    /// How much room the first of the accepted requests that only wait for room needs; nil if none does.
    private var bytesNeededByRequests: Int? {
        if let read = firstRestartableRead { return read.isInArray ? 0 : read.missingBytes }
        if let request = state.order.firstStartable(in: sessions.iteration) { return request.neededBytes }
        if let array = state.array, !array.hasRoom, !array.isBehind { return array.replyReserve }
        return nil
    }

    func outputWritten(to stream: Stream) {
        state.lastActivity = loop.now
        chargeStream()
    }

    // MARK: Order

    /// Whether a request may start now; if not, it has to wait.
    ///
    /// - Parameter hasWaited: whether it is the first of those that wait.
    func admits(_ kind: RequestKind, on collection: Collection, hasWaited: Bool) -> Bool {
        state.order.admits(kind, on: collection, hasWaited: hasWaited, in: sessions.iteration)
    }

    /// Whether a read may be executed at once: no other one is in flight that it would overtake.
    func mayReadNow(_ collection: Collection) -> Bool { !state.order.hasReads(on: collection) }

    /// Keeps a frame until the requests before it on its collections are done, and there is room for its reply.
    ///
    /// - Parameter isFirst: whether those that wait are behind it.
    func enqueue(_ request: WaitingRequest, isFirst: Bool) {
        state.order.enqueue(request, isFirst: isFirst)
        chargeWaiting(request, +1)
        sessions.add(self, to: request.neededBytes > 1 ? [.overdue, .room] : .overdue)
    }

    /// Counts a request that is in flight.
    func started(_ request: PendingRequest) { count(request, +1) }

    /// Counts a request that is done.
    func ended(_ request: PendingRequest) {
        if let index = request.indexAmongChanges { state.changes.remove(at: index) }
        count(request, -1)
        state.lastActivity = loop.now
        sessions.add(self, to: .resumable)
    }

    /// Stops counting a request that is about to be counted as another kind.
    func ended(counting request: PendingRequest) {
        count(request, -1)
        sessions.add(self, to: .resumable)
    }

    private func count(_ request: PendingRequest, _ change: Int) {
        let iteration = sessions.iteration
        if let collection = request.collection {
            state.order.count(request.kind, on: collection, change, in: iteration)
        }
        for collection in request.otherCollections {
            state.order.count(request.kind, on: collection, change, in: iteration)
        }
        let isFollower = request.kind == .follow
        if isFollower {
            state.followers += change
            state.followerBytes += change * request.followingBytes
        }
        charge(requests: isFollower ? 0 : change * request.weight, bytes: change * request.chargedBytes)
    }

    // MARK: Following

    /// Why a request may not wait for changes; nil: it may. One that does already may do so again, and so may one where
    /// no other does: what followers hold must leave room for requests.
    ///
    /// - Parameter bytes: what it would hold.
    func refusal(ofFollower request: PendingRequest, holding bytes: Int) -> CRUDError? {
        guard request.kind != .follow, state.followers > 0 else { return nil }
        let limits = loop.limits
        guard state.followers < limits.followersPerSession else {
            return .limit(
                "followers_per_session", limits.followersPerSession,
                "\(state.followers) requests of this connection wait for changes already; cancel one of them")
        }
        guard state.followerBytes + bytes <= max(SessionAccount.modestBytes, limits.sessionBytes / 2) else {
            return .limit(
                "session_bytes", limits.sessionBytes,
                "the requests of this connection that wait for changes hold half of what it may; cancel one of them")
        }
        return nil
    }

    /// Replies to the requests that wait for changes, or forgets them where the connection is closed.
    func endFollowing() {
        for request in state.changes.all { request.endWait() }
    }

    /// Cancels a request that the session has sent before: ends its wait for changes, or withdraws it where it waits
    /// for something else and nothing has come of it. Any other is left as it is.
    ///
    /// - Parameter id: of the request, as that was sent.
    func cancel(requestWithID id: [UInt8]) {
        if let request = state.changes[id] {
            request.cancel()
            guard let read = state.unfinishedReads.first(where: { $0 === request }), read.kind == .follow else {
                return
            }
            // It has been woken, and waits for room.
            takeUnfinished(read)
            request.replyEmpty()
        } else if let request = state.order.take(withID: id) {
            let text = request.text
            execute(frame: text.span, after: request, failingWith: .withdrawn)
            chargeWaiting(request, -1)
            // Those behind it may be able to start.
            sessions.add(self, to: .resumable)
        } else if let read = state.unfinishedReads.first(where: { $0.id == id && $0.canBeWithdrawn }) {
            takeUnfinished(read)
            read.fail(.withdrawn, isOverdue: true)
            read.ended()
        }
    }

    /// Has a read begin again once there is room for what it has found, behind those that were started before it.
    func awaitRoom(for read: PendingRequest) {
        guard state.stream != nil else {
            read.hasReplied()
            return read.ended()
        }
        let reads = state.unfinishedReads
        state.unfinishedReads.insert(read, at: reads.firstIndex { $0.number > read.number } ?? reads.count)
        account.wait(read.chargedBytes)
        if read.kind == .read, let collection = read.collection {
            state.order.suspendRead(on: collection)
            for later in state.unfinishedReads where later.isBehind(read) { later.forgetFound() }
        }
        sessions.add(self, to: [.overdue, .room])
    }

    /// A read no longer waits to begin again: it does, or it ends.
    func takeUnfinished(_ read: PendingRequest) {
        state.unfinishedReads.removeAll { $0 === read }
        account.wait(-read.chargedBytes)
        guard read.kind == .read, let collection = read.collection else { return }
        state.order.resumeRead(on: collection, in: sessions.iteration)
    }

    /// Whether a read that was started before this one begins again, so that this one has to be made again, too.
    func mustBeginAgain(_ read: PendingRequest) -> Bool {
        state.unfinishedReads.contains { read.isBehind($0) }
    }

    /// Whether a read may begin again now: no other one is in flight that was sent to the backend before.
    func admitsUnfinishedRead(on collection: Collection) -> Bool {
        state.order.admitsUnfinishedRead(on: collection, in: sessions.iteration)
    }

    /// The number of a request that is started: higher than those of all before it.
    func nextRequestNumber() -> UInt64 {
        state.startedRequests += 1
        return state.startedRequests
    }

    /// Has a read begin again, now or once there is room.
    func beginAgainIfThereIsRoom(_ read: PendingRequest) {
        guard state.unfinishedReads.isEmpty, read.canBeginAgain, hasRoom(for: read) else {
            return awaitRoom(for: read)
        }
        beginAgain(read)
    }

    /// Whether a read finds the room that it was missing. An array has room for the replies to all of its elements.
    private func hasRoom(for read: PendingRequest) -> Bool { read.isInArray || hasRoom(for: read.missingBytes) }

    private func beginAgain(_ read: PendingRequest) {
        if !read.isInArray { charge(requests: 0, bytes: read.missingBytes) }
        read.beginAgain()
    }

    /// The first read that may begin again: it does not wait for those of collections that cannot be read now.
    private var firstRestartableRead: PendingRequest? { state.unfinishedReads.first(where: \.canBeginAgain) }

    /// Starts what had to wait for requests that are done, as far as there is room and time.
    func resume() {
        let enoughOutput = outputBytes + Self.replyBytesPerIteration
        while let read = firstRestartableRead, !hasHadItsShare, outputBytes < enoughOutput {
            guard hasRoom(for: read) else { break }
            takeUnfinished(read)
            spend(Self.workOfFrame)
            beginAgain(read)
        }
        while let request = state.order.firstStartable(in: sessions.iteration), !hasHadItsShare,
            outputBytes < enoughOutput, hasRoom(for: request.neededBytes)
        {
            state.order.remove(request)
            spend(Self.workOfFrame)
            let text = request.text
            execute(frame: text.span, after: request)
            // Not before: a session that is left with little must not exceed its user's share any more.
            chargeWaiting(request, -1)
        }
        state.order.removeIdle()
        if let array = state.array { resume(array) }
        if bytesNeededByRequests != nil { sessions.add(self, to: .room) }
        closeIfFinished()
    }

    /// Ends what has waited too long: requests fail, and nothing of them has been applied; a frame of which only a part
    /// has come ends the session.
    func expireWaiting(at now: Duration) {
        if let array = state.array, array.deadline <= now {
            reject(array, .overdue)
            resume(array)
        }
        while let request = state.order.takeOverdue(at: now) {
            let text = request.text
            execute(frame: text.span, after: request, failingWith: .overdue)
            chargeWaiting(request, -1)
            // It may have been the last one that the session waited for.
            sessions.add(self, to: .resumable)
        }
        for read in state.unfinishedReads where read.deadline <= now {
            takeUnfinished(read)
            read.fail(read.errorWithoutRoom, isOverdue: true)
            read.ended()
        }
        if let frame = state.partialFrame, state.neededBytes == 0, frame.deadline <= now {
            debug("a frame has not come to its end in time")
            finish()
            state.stream?.discardInput()
        }
        if let closingDeadline, closingDeadline <= now { state.stream?.close() }
        account.endOverdraft()
    }

    /// Whether something waits that can be overdue.
    var hasWaiting: Bool {
        closingDeadline != nil && state.stream != nil || state.array != nil || state.order.hasWaiting
            || !state.unfinishedReads.isEmpty || state.partialFrame != nil
    }

    // MARK: Batch arrays

    /// Starts a batch array; frames after it wait until its last element has been started.
    func start(_ array: BatchArray) {
        state.array = array
        charge(requests: 0, bytes: array.chargedBytes)
        account.wait(array.chargedBytes)
        resume(array)
        if state.array != nil { sessions.add(self, to: [.overdue, .room]) }
    }

    private func resume(_ array: BatchArray) {
        array.isBehind = false
        if !array.hasRoom {
            let bytes = array.replyReserve
            guard array.isStarted || hasRoom(for: bytes) else { return }
            array.hasRoom = true
            account.wait(-array.chargedBytes)
            array.chargedBytes += bytes
            charge(requests: 0, bytes: bytes)
        }
        startElements(of: array)
        guard array.isStarted else {
            // What it would keep the requests before it may need.
            if array.isBehind { giveRoomBack(of: array) }
            return
        }
        state.array = nil
        finishIfComplete(array)
    }

    private func giveRoomBack(of array: BatchArray) {
        let bytes = array.replyReserve
        array.hasRoom = false
        array.chargedBytes -= bytes
        charge(requests: 0, bytes: -bytes)
        account.wait(array.chargedBytes)
    }
}
