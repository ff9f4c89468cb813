import CRUDConfiguration
import CRUDCore
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDWire

/// Carries out the requests of one event loop's sessions.
///
/// A request is read where it lies in the receive buffer. Answers that are at hand go out at once; what a backend has to
/// do is added to that backend's batch of this turn, and answered when the batch comes back.
final class Dispatcher {
    /// What became of a request.
    enum Disposition {
        /// It has been answered, or is under way.
        case takenUp
        /// Requests before it have to be carried out first.
        case mustWait([Collection], RequestKind)
        /// Elements before it in its batch array have to be carried out first.
        case mustWaitForArray
    }

    // The loop owns the dispatcher and outlives it.
    unowned(unsafe) let loop: ServiceLoop
    /// The request that is being carried out.
    // Not checked for exclusive access at run time, which a profile of reads shows: one thread uses it, and nothing that is
    // called during an access comes back to it.
    @exclusivity(unchecked) var request = Request()
    /// When the request that is being carried out has waited long enough.
    private(set) var deadline = Duration.zero
    var collections: CollectionTable
    var revisions = RevisionSource()
    let recordReply: RecordReply
    // Not checked for exclusive access at run time, as `request`.
    @exclusivity(unchecked) var normalization = ItemNormalization()
    // Not checked for exclusive access at run time, which a profile of reads shows: one thread uses it, and nothing that is
    // called during an access comes back to it.
    @exclusivity(unchecked) private var reader: RequestReader

    init(loop: ServiceLoop, collections: CollectionTable) {
        self.loop = loop
        self.collections = collections
        reader = Self.reader(by: loop.limits)
        recordReply = RecordReply(reply: loop.reply, maximumBytes: loop.limits.frameBytes)
    }

    /// Goes over to what the loop serves now.
    func serve(_ service: Service) {
        collections.serve(rules: service.configuration.collections, backends: service.backends)
        reader = Self.reader(by: service.configuration.limits)
        recordReply.maximumBytes = service.configuration.limits.frameBytes
    }

    private static func reader(by limits: Configuration.Limits) -> RequestReader {
        RequestReader(maximumDepth: limits.jsonDepth, maximumElements: limits.batch)
    }

    // MARK: Frames

    /// Carries out a frame, or has it wait for its turn.
    ///
    /// - Parameter waitedUntil: for a frame whose turn has come: its deadline. What waits behind it does not count.
    func carryOut(frame text: Span<UInt8>, from session: Session, waitedUntil: Duration? = nil) {
        deadline = waitedUntil ?? loop.deadline
        do throws(RequestFault) {
            switch try reader.read(frame: text, into: &request) {
            case .request:
                if loop.isDraining, waitedUntil == nil { return answer(Self.draining, text, session, .frame) }
                let disposition = carryOut(text, from: session, to: .frame, hasWaited: waitedUntil != nil)
                if case .mustWait(let collections, let kind) = disposition {
                    session.wait(text, for: collections, kind)
                }
            case .array(let elements): try carryOut(elements, of: text, from: session)
            }
        } catch {
            refuse(error, text, from: session, to: .frame)
        }
    }

    /// Answers a request whose turn has not come in time.
    func refuse(overdue text: Span<UInt8>, from session: Session) {
        // It has been read before without a fault.
        guard (try? reader.read(frame: text, into: &request)) != nil else { return }
        answer(Self.overdue, text, session, .frame)
    }

    private static let draining = CRUDError(.unavailable, "the daemon is shutting down")

    private static let overdue = CRUDError(.unavailable, "the request's turn has not come in time; nothing was applied")

    private func refuse(_ fault: RequestFault, _ text: Span<UInt8>, from session: Session, to target: ReplyTarget) {
        guard !fault.isNotification else { return }
        if let id = fault.id {
            loop.reply.error(fault.error, id: text.extracting(id.range))
        } else {
            loop.reply.error(fault.error)
        }
        deliver(to: target, of: session)
    }

    // MARK: Batch arrays

    private func carryOut(
        _ elements: [JSONSlice], of text: Span<UInt8>, from session: Session
    ) throws(RequestFault) {
        let maximum = loop.limits.batch
        guard elements.count <= maximum else {
            throw RequestFault(
                CRUDError(
                    .limitExceeded, "the batch array has more than \(maximum) elements",
                    details: .init(limit: "batch", maximum: maximum)))
        }
        let array = ArrayExecution(
            text: text.copy(), elements: elements, deadline: loop.deadline, maximumBytes: loop.limits.frameBytes)
        if loop.isDraining { refuseRest(of: array, from: session, Self.draining) }
        session.carryOut(array)
    }

    /// Starts as many elements of an array as may start now.
    func carryOn(_ array: ArrayExecution, from session: Session) {
        let bytes = array.text
        let text = bytes.span
        deadline = array.deadline
        while array.next < array.elements.count {
            guard !session.hasHadItsShare else { return loop.goOnNextTurn(session) }
            session.spend(1)
            do throws(RequestFault) {
                try reader.read(element: array.elements[array.next], of: text, into: &request)
                guard case .takenUp = carryOut(text, from: session, to: .array(array), hasWaited: false) else { return }
            } catch {
                refuse(error, text, from: session, to: .array(array))
            }
            array.next += 1
        }
    }

    /// Answers the elements of an array whose turn has not come in time.
    func refuse(overdue array: ArrayExecution, from session: Session) {
        refuseRest(of: array, from: session, Self.overdue)
    }

    private func refuseRest(of array: ArrayExecution, from session: Session, _ error: CRUDError) {
        let bytes = array.text
        let text = bytes.span
        while array.next < array.elements.count {
            do throws(RequestFault) {
                try reader.read(element: array.elements[array.next], of: text, into: &request)
                answer(error, text, session, .array(array))
            } catch {
                refuse(error, text, from: session, to: .array(array))
            }
            array.next += 1
        }
    }

    // MARK: Requests

    private func carryOut(
        _ text: Span<UInt8>, from session: Session, to target: ReplyTarget, hasWaited: Bool
    ) -> Disposition {
        if target.isBlocked { return .mustWaitForArray }
        do throws(CRUDError) {
            if request.method == .recordBatch { return try batch(text, session, target, hasWaited: hasWaited) }
            guard let name = request[.collection] else { return try carryOutWithoutCollection(text, session, target) }
            let collection = try find(name, text, for: session, to: request.traits.access)
            let kind = RequestKind(request.traits)
            guard target.admits(kind, on: collection.backend) else { return .mustWaitForArray }
            guard session.admits(kind, on: collection, hasWaited: hasWaited) else {
                return .mustWait([collection], kind)
            }
            try carryOut(on: collection, text, session, target)
        } catch {
            answer(error, text, session, target)
        }
        return .takenUp
    }

    /// The collection of that name, if the session may do with it what needs that access.
    func find(
        _ name: JSONSlice, _ text: Span<UInt8>, for session: Session, to access: MethodAccess
    ) throws(CRUDError) -> Collection {
        let needed = access.permissions
        let decoded = name.hasEscapes ? name.decodedString(text) : nil
        let collection =
            if let decoded { collections.collection(named: decoded.span) } else {
                collections.collection(named: text.extracting(name.content))
            }
        guard let collection else {
            let name = decoded ?? text.extracting(name.content).copy()
            guard session.authority.permissions(forName: name).isSuperset(of: needed) else { throw Self.denied }
            throw CRUDError(.collectionNotFound, "no rule of the configuration maps this collection")
        }
        guard session.authority.permissions(for: collection).isSuperset(of: needed) else { throw Self.denied }
        return collection
    }

    static let denied = CRUDError(.permissionDenied, "the access rules do not allow this")

    private func carryOut(
        on collection: Collection, _ text: Span<UInt8>, _ session: Session, _ target: ReplyTarget
    ) throws(CRUDError) {
        switch request.method {
        case .recordRead: try read(collection, text, session, target)
        case .recordExists: try exists(collection, text, session, target)
        case .recordReadMany: try readMany(collection, text, session, target)
        case .collectionDescribe: try describe(collection, text, session, target)
        case .recordCreate, .recordUpdate, .recordDelete, .recordUpsert, .recordPatch:
            try mutate(collection, text, session, target)
        case .recordQuery: try query(collection, text, session, target)
        case .recordCount: try count(collection, text, session, target)
        case .recordDeleteMatching: try deleteMatching(collection, text, session, target)
        case .recordBatch, .collectionList, .backendList, .pluginList, .sessionHello, .daemonPing, .daemonStatus,
            .daemonReload,
            .discover:
            // Their rows of the method table have no collection.
            throw CRUDError(.internalError, "the method has no collection")
        }
    }

    // MARK: Answers

    /// Answers the request with an error, unless it is a notification.
    func answer(_ error: CRUDError, _ text: Span<UInt8>, _ session: Session, _ target: ReplyTarget) {
        guard let id = request.id else { return }
        loop.reply.error(error, id: text.extracting(id.range))
        deliver(to: target, of: session)
    }

    /// Instead of what is longer than a frame may be.
    var replyTooLong: CRUDError {
        let maximum = loop.limits.frameBytes
        return CRUDError(
            .limitExceeded, "the reply would be longer than a frame",
            details: .init(limit: "frame_bytes", maximum: maximum))
    }

    /// Sends what the reply writer holds to where it belongs.
    func deliver(to target: ReplyTarget, of session: Session) {
        switch target {
        case .frame:
            // An error can be too long by the request's id alone, which then has to be left out.
            if loop.reply.count > loop.limits.frameBytes { loop.reply.error(replyTooLong) }
            session.send()
        case .array(let array): array.add(loop.reply)
        }
    }
}

extension RequestKind {
    init(_ traits: MethodTraits) {
        if traits.method == .recordDeleteMatching {
            self = .sweep
            return
        }
        switch traits.access {
        case .everybody, .read, .admin: self = .read
        case .write, .readWrite, .operations: self = .write
        }
    }
}

extension MethodAccess {
    /// What a peer must be allowed.
    var permissions: Permissions {
        switch self {
        case .everybody: []
        case .read: .read
        case .write: .write
        case .readWrite: [.read, .write]
        case .admin: .admin
        // Each of them is looked at by itself.
        case .operations: []
        }
    }
}
