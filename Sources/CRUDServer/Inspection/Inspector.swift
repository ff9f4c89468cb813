import CRUDConfiguration
import CRUDJSON
import CRUDModel
import CRUDPlacement
import CRUDThreads

/// Executes what administrators ask about all event loops, on a thread of its own: it asks each loop through its
/// mailbox, and does what takes long, such as sorting, looking up names of users, and writing texts.
final class Inspector: Sendable {
    private let queue = WorkQueue<Inspection>()
    private let disks = Disks()

    /// The daemon serves from now on, with these loops.
    func start(_ loops: LoopGroup) throws(ThreadFailure) {
        _ = try Thread(named: "inspect") { [queue, disks] in
            while case .items(let inspections) = queue.take(timeout: nil) {
                for inspection in inspections { inspection.execute(loops, disks) }
            }
        }
    }

    func append(_ inspection: Inspection) { _ = queue.append(inspection) }
}

/// A question about all event loops.
final class Inspection: QueueItem, Sendable {
    enum Request: Sendable {
        case metrics(withHistograms: Bool)
        case backends
        case slowRequests(limit: Int)
        case sessions
        case closing(session: Int)
        case access(AccessQuestion, user: String)

        /// What the audit trail says of it.
        var audit: AuditEntry.Details? {
            if case .closing(let session) = self { .init(subject: "of session \(session)") } else { nil }
        }
    }

    let byteCount = 0
    private let request: Request
    private let service: Service
    private let completion: DelegatedCalls.Completion

    init(_ request: Request, _ service: Service, _ completion: @escaping DelegatedCalls.Completion) {
        self.request = request
        self.service = service
        self.completion = completion
    }

    fileprivate func execute(_ loops: LoopGroup, _ disks: Disks) {
        completion(Result { () throws(CRUDError) in try result(loops, disks) })
    }

    private func result(_ loops: LoopGroup, _ disks: Disks) throws(CRUDError) -> [UInt8] {
        let timeout = service.configuration.limits.requestTimeout
        var writer = JSONWriter()
        switch request {
        case .metrics(let withHistograms):
            var sum = LoopMeasurement()
            for measurement in try loops.ask(within: timeout, Mailbox.Message.measure) { sum.add(measurement) }
            let text = MetricsText.make(service, sum)
            writer.object { result in
                result.key("text")
                result.string(utf8: text)
                if withHistograms { MetricsText.writeHistograms(service, sum, to: &result) }
            }
        case .backends: return BackendList.text(service.backends, disks)
        case .slowRequests(let limit):
            let entries = service.slowLog.entries.prefix(limit)
            writer.object { $0.member("entries", objects: entries) { $0.describe(to: &$1) } }
        case .sessions:
            let sessions = try loops.ask(within: timeout, Mailbox.Message.describeSessions).joined()
                .sorted { $0.number < $1.number }
            var users = UserNames()
            let owned = service.control.catalog.ownedCollections
            writer.object { result in
                result.member("sessions", objects: sessions) { session, description in
                    let use = service.quotas.use(of: session.uid) ?? (owned[session.uid] == nil ? Quotas.Use() : nil)
                    session.describe(to: &description, user: users.name(of: session.uid)) { quota in
                        switch quota {
                        case "collections": owned[session.uid] ?? 0
                        case "records": use?.records
                        default: use?.bytes
                        }
                    }
                }
            }
        case .access(let question, let user):
            return question.answer(service.configuration.access, try Peer(named: user))
        case .closing(let session):
            let replies = try loops.ask(within: timeout) { .closeSession(session, $0) }
            guard replies.contains(true) else {
                throw CRUDError(
                    .invalidParams, "there is no session \(session)", details: CRUDError.Details(member: "session"))
            }
            return Array("{}".utf8)
        }
        return writer.bytes
    }
}
