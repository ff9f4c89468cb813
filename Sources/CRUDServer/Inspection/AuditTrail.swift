import CRUDModel
import CRUDThreads
import CRUDWire
import Logging

/// What one line of the log says of a request that administrators may be asked about: one that needs `admin` and
/// changes something, or one that deletes many records.
final class AuditEntry: QueueItem, Sendable {
    let byteCount = 0
    fileprivate let method: Method
    fileprivate let collection: [UInt8]?
    fileprivate let details: Details
    fileprivate let origin: RequestOrigin
    fileprivate let outcome: RequestOutcome
    fileprivate let traceParent: TraceParent?
    /// What is put behind the line.
    fileprivate let suffix: String

    /// What the method and its collection do not say.
    struct Details: Sendable {
        /// Such as "of session 7".
        var subject: String?
        /// How many records are known to be deleted.
        var records: Int?
    }

    /// Whether it may have set the log level, which must not hide who has.
    fileprivate var mayHaveSetLevel: Bool { method == .daemonLogLevel || method == .daemonReload }

    init(
        _ method: Method, on collection: [UInt8]?, _ details: Details, from origin: RequestOrigin,
        _ outcome: RequestOutcome, _ traceParent: TraceParent?, suffix: String
    ) {
        self.method = method
        self.collection = collection
        self.details = details
        self.origin = origin
        self.outcome = outcome
        self.traceParent = traceParent
        self.suffix = suffix
    }

    fileprivate func message(_ user: String) -> String {
        var text = "\(origin)"
        if !user.isEmpty { text += " (\(user))" }
        if !origin.client.isEmpty { text += ", client \(quoted(origin.client.utf8))" }
        text += ": \(method.name)"
        if let subject = details.subject { text += " \(subject)" }
        if let collection { text += " on collection \(quoted(collection))" }
        text += ": \(outcome.name)"
        if let records = details.records { text += ", \(records) record\(records == 1 ? "" : "s") deleted" }
        if let traceParent { text += ", trace \(traceParent.traceID)" }
        return text + suffix
    }

    fileprivate func metadata(_ user: String) -> Logger.Metadata {
        var metadata: Logger.Metadata = [
            "session": "\(origin.session)", "uid": "\(origin.uid)", "method": "\(method.name)",
            "outcome": "\(outcome.name)",
        ]
        if !user.isEmpty { metadata["user"] = "\(user)" }
        if !origin.client.isEmpty { metadata["client"] = "\(origin.client)" }
        if let collection { metadata["collection"] = "\(String(decoding: collection, as: UTF8.self))" }
        if let records = details.records { metadata["records"] = "\(records)" }
        if let traceParent { metadata.add(traceParent) }
        return metadata
    }
}

extension Logger.Metadata {
    /// Adds the trace that a request belongs to, by the names that OpenTelemetry has for it in logs.
    ///
    /// <https://opentelemetry.io/docs/specs/otel/compatibility/logging_trace_context/>
    mutating func add(_ traceParent: TraceParent) {
        self["trace_id"] = "\(traceParent.traceID)"
        self["span_id"] = "\(traceParent.spanID)"
    }
}

/// Logs who has done what, on a thread of its own: the name of a user may come from a directory on the network.
final class AuditTrail: Sendable {
    private let queue = WorkQueue<AuditEntry>()
    private let hasEnded = OneShot<Bool>()

    /// How long the end of the daemon waits for the names of users.
    private static let timeout = Duration.seconds(5)

    func start(_ logger: Logger) throws(ThreadFailure) {
        // What the level excludes is not appended.
        var logger = logger
        logger.logLevel = .notice
        _ = try Thread(named: "audit") { [queue, hasEnded, logger] in
            while case .items(let entries) = queue.take(timeout: nil) {
                var users = UserNames()
                for entry in entries {
                    let user = users.name(of: entry.origin.uid)
                    logger.notice("\(entry.message(user))", metadata: entry.metadata(user))
                }
            }
            hasEnded.resolve(true)
        }
    }

    /// Has an act logged, unless the level of the log excludes it now; what it is later does not matter.
    func append(_ entry: AuditEntry, to logger: Logger) {
        guard entry.mayHaveSetLevel || logger.logLevel <= .notice else { return }
        _ = queue.append(entry)
    }

    /// Logs what has not been logged yet.
    func finish() {
        queue.close()
        _ = hasEnded.wait(atMost: Self.timeout)
    }
}
