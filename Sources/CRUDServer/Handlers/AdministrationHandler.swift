import CRUDConfiguration
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDPlacement
import CRUDPluginHost
import CRUDStorage
import CRUDThreads
import CRUDWire
import Glibc

/// The methods that concern the daemon as a whole.
final class AdministrationHandler {
    private let loop: LoopState
    private let delegated: DelegatedCalls
    private let inspector: Inspector

    init(_ loop: LoopState, _ delegated: DelegatedCalls, _ inspector: Inspector) {
        self.loop = loop
        self.delegated = delegated
        self.inspector = inspector
    }

    func listPlugins(_ call: borrowing Call) {
        let plugins = loop.service.plugins
        call.reply { output in
            output.appendObject { result in
                result.member("plugins", objects: plugins) { plugin, description in
                    description.member("name", plugin.name)
                    description.member("version", plugin.version)
                    description.member("abi", Plugin.abiVersion)
                    description.member("path", plugin.path)
                }
            }
        }
    }

    func hello(_ call: borrowing Call) {
        let limits = loop.limits
        if let client = call[.client] {
            let name = String(decoding: call.decode(client).prefix(Session.maximumClientNameBytes), as: UTF8.self)
            call.session.client = name
            call.session.debug("the client is \(quoted(name.utf8))")
        }
        call.reply { output in
            output.appendObject { hello in
                hello.member("daemon", "crudd")
                hello.member("version", CRUDVersion.current)
                hello.member("protocol", ProtocolVersion.current)
                hello.key("limits")
                hello.object { $0.members(of: limits) }
            }
        }
    }

    func ping(_ call: borrowing Call) {
        call.reply { $0.append("{}") }
    }

    /// Ends or withdraws another request of the session; its reply comes first.
    func cancel(_ call: borrowing Call) {
        if let id = call[.id] { call.session.cancel(requestWithID: call.copy(id)) }
        call.reply { $0.append("{}") }
    }

    func status(_ call: borrowing Call) {
        let service = loop.service
        call.reply { output in
            output.appendObject { status in
                status.member("version", CRUDVersion.current)
                status.member("pid", getpid())
                status.member("uptimeSeconds", (ContinuousClock.now - service.started).components.seconds)
                status.member("sessions", service.sessions.current)
                status.key("backends")
                status.object { backends in
                    for backend in service.backends { backends.member(backend.name, backend.status.state.rawValue) }
                }
                status.key("notices")
                status.object { notices in
                    for backend in service.backends {
                        if let notice = backend.status.notice { notices.member(backend.name, notice) }
                    }
                }
                status.key("cache")
                status.object { cache in
                    let statistics = service.cache.statistics
                    cache.member("hits", statistics.hits)
                    cache.member("misses", statistics.misses)
                    cache.member("evictions", statistics.evictions)
                    cache.member("records", statistics.entries)
                    cache.member("bytes", statistics.bytes)
                    cache.member("maximumBytes", service.configuration.cacheBytes)
                }
                service.control.describe(to: &status)
                status.member("configuration", service.configuration.file)
            }
        }
    }

    // MARK: Other threads

    func reload(_ call: borrowing Call) {
        let options = Plan.Options(force: call.isTrue(.force), move: call.isTrue(.move))
        guard !call.isTrue(.dryRun) else {
            let overdue = CRUDError(.unavailable, "it takes long to find out what a reload would do")
            let completion = delegated.begin(call, overdue: overdue)
            return loop.service.reload(.dryRun(options), completion)
        }
        let words = [options.force ? "force" : nil, options.move ? "move" : nil].compactMap(\.self)
        let completion = delegated.begin(
            call, overdue: CRUDError(.outcomeUnknown, "the reload takes long; the daemon's log will tell its outcome"),
            audit: AuditEntry.Details(subject: words.isEmpty ? nil : "with \(words.joined(separator: " and "))"))
        loop.service.reload(.reload(options), completion)
    }

    /// Writes a backup on a thread of its own, however long that takes.
    func backUp(_ call: borrowing Call) throws(CRUDError) {
        let name = call[.backend].map { String(decoding: call.decode($0), as: UTF8.self) } ?? ""
        let directory = call[.directory].map { String(decoding: call.decode($0), as: UTF8.self) } ?? ""
        guard let backend = loop.service.backends.first(where: { $0.name == name }) else {
            throw Parameter.backend.invalid("must be the name of a backend")
        }
        let cancellation = BackupCancellation()
        let audit = AuditEntry.Details(subject: "of backend \(backend.name) in \(quoted(directory.utf8))")
        let completion = delegated.begin(call, cancellation, audit: audit)
        BackupTask(of: backend, in: directory, within: loop.limits.requestTimeout, cancellation, completion).start()
    }

    func listSettings(_ call: borrowing Call) {
        let overdue = CRUDError(.unavailable, "a reload or another change takes long")
        loop.service.reload(.settings, delegated.begin(call, overdue: overdue))
    }

    func setLogLevel(_ call: borrowing Call) throws(CRUDError) {
        let name = call[.level].map { String(decoding: call.decode($0), as: UTF8.self) } ?? ""
        guard let level = Configuration.LogLevel(rawValue: name) else {
            let names = Configuration.LogLevel.allCases.map(\.rawValue).joined(separator: ", ")
            throw Parameter.level.invalid("must be one of \(names)")
        }
        let overdue = CRUDError(.outcomeUnknown, "a reload or another change takes long; the log will tell the outcome")
        let audit = AuditEntry.Details(subject: "to \(level.rawValue)")
        loop.service.reload(.logLevel(level), delegated.begin(call, overdue: overdue, audit: audit))
    }

    /// Executes what concerns all event loops.
    func inspect(_ request: Inspection.Request, _ call: borrowing Call) {
        let completion = delegated.begin(
            call, overdue: CRUDError(.unavailable, "an event loop of the daemon takes long to reply"),
            audit: request.audit)
        inspector.append(Inspection(request, loop.service, completion))
    }

    /// The number of the session that is meant.
    func session(_ call: borrowing Call) -> Int { call[.session]?.integer(call.text.span) ?? 0 }

    // MARK: Descriptions

    func discover(_ call: borrowing Call) {
        let document = OpenRPCDocument.text
        call.reply { $0.append(document.span) }
    }
}

extension JSONWriter {
    /// The limits on what a client may send, by their names in the configuration; times in milliseconds.
    fileprivate mutating func members(of limits: Configuration.Limits) {
        member("frame_bytes", limits.frameBytes)
        member("item_bytes", limits.itemBytes)
        member("json_depth", limits.jsonDepth)
        member("query_limit", limits.queryLimit)
        member("query_nodes", QueryNodes.maximum)
        member("query_bytes", QueryNodes.maximumBytes)
        member("filter_pattern", LikePattern.maximumBytes)
        member("batch", limits.batch)
        member("sessions", limits.sessions)
        member("sessions_per_user", limits.sessionsPerUser)
        member("inflight_per_session", limits.inflightPerSession)
        member("followers_per_session", limits.followersPerSession)
        member("session_bytes", limits.sessionBytes)
        member("buffer_bytes", limits.bufferBytes)
        member("request_timeout", limits.requestTimeout.milliseconds)
        member("idle_timeout", limits.idleTimeout?.milliseconds ?? 0)
    }
}
