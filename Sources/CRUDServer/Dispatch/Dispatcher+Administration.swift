import CRUDConfiguration
import CRUDCore
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDWire

#if canImport(Glibc)
import Glibc
#endif

// The methods that concern no single collection.

extension Dispatcher {
    /// Carries out a request without a collection. What they tell depends on the writes before them, so that in a batch
    /// array they wait for those.
    func carryOutWithoutCollection(
        _ text: Span<UInt8>, _ session: Session, _ target: ReplyTarget
    ) throws(CRUDError) -> Disposition {
        if case .array(let array) = target, array.underWay > 0 { return .mustWaitForArray }
        if request.traits.access == .admin, !session.authority.isAdmin { throw Self.denied }
        if request.method == .daemonReload {
            reload(text, session, target)
            return .takenUp
        }
        guard let id = request.id else { return .takenUp }
        var writer = JSONWriter()
        switch request.method {
        case .collectionList: listCollections(for: session, &writer)
        case .backendList: listBackends(&writer)
        case .pluginList: listPlugins(&writer)
        case .sessionHello: hello(&writer)
        case .daemonStatus: status(&writer)
        case .discover: writer.raw(OpenRPCDocument.text(version: CRUDVersion.current))
        default: writer.object { _ in }
        }
        loop.reply.beginResult(id: text.extracting(id.range))
        loop.reply.append(writer.bytes.span)
        loop.reply.end()
        try checkSize(for: target)
        deliver(to: target, of: session)
        return .takenUp
    }

    // MARK: Collections

    /// The collections that the configuration names, and those that a glob has brought into being, by name.
    private func listCollections(for session: Session, _ writer: inout JSONWriter) {
        var names = Set(loop.service.catalog.entries.map(\.name))
        for rule in loop.service.configuration.collections.rules where !rule.pattern.isGlob {
            names.insert(rule.pattern.literal)
        }
        writer.object { result in
            result.key("collections")
            result.array { list in
                for name in names.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
                    guard let collection = collections.collection(named: name.span),
                        session.authority.permissions(for: collection).contains(.read)
                    else { continue }
                    list.object { Self.describe(collection, &$0) }
                }
            }
        }
    }

    /// The result of `collection.describe`.
    func writeDescription(of collection: Collection, count: Int) {
        var writer = JSONWriter()
        writer.object { description in
            Self.describe(collection, &description)
            description.member("count", count)
            description.member("capabilities", strings: collection.backend.capabilities.names)
        }
        loop.reply.append(writer.bytes.span)
    }

    private static func describe(_ collection: Collection, _ description: inout JSONWriter) {
        description.key("name")
        description.string(utf8: collection.name)
        description.member("backend", collection.backend.name)
        description.member("format", collection.rule.format.rawValue)
        description.member("indexes", strings: collection.rule.indexes)
    }

    // MARK: Backends and plugins

    private func listBackends(_ writer: inout JSONWriter) {
        writer.object { result in
            result.key("backends")
            result.array { list in
                for backend in loop.service.backends { list.object { Self.describe(backend, &$0) } }
            }
        }
    }

    private static func describe(_ backend: Backend, _ description: inout JSONWriter) {
        let status = backend.status
        description.member("name", backend.name)
        description.member(backend.plugin.isCommand ? "command" : "plugin", backend.plugin.name)
        let isolation: BackendConfiguration.Isolation = backend.plugin.isChild ? .process : .inline
        description.member("isolation", isolation.rawValue)
        description.member("state", status.state.rawValue)
        if backend.plugin.isChild {
            description.member("restarts", status.restarts)
            if let pid = status.pid { description.member("pid", pid) }
        }
        description.member("capabilities", strings: backend.capabilities.names)
        if let error = status.lastError { description.member("lastError", error) }
    }

    private func listPlugins(_ writer: inout JSONWriter) {
        writer.object { result in
            result.key("plugins")
            result.array { list in
                for plugin in loop.service.plugins {
                    list.object { description in
                        description.member("name", plugin.name)
                        description.member("version", plugin.version)
                        description.member("abi", Plugin.abiVersion)
                        description.member("path", plugin.path)
                    }
                }
            }
        }
    }

    // MARK: The daemon

    private func hello(_ writer: inout JSONWriter) {
        let limits = loop.limits
        writer.object { hello in
            hello.member("daemon", "crudd")
            hello.member("version", CRUDVersion.current)
            hello.member("protocol", ProtocolVersion.current)
            hello.key("limits")
            hello.object { $0.members(of: limits) }
        }
    }

    private func status(_ writer: inout JSONWriter) {
        let service = loop.service
        writer.object { status in
            status.member("version", CRUDVersion.current)
            status.member("pid", getpid())
            status.member("uptimeSeconds", (ContinuousClock.now - service.started).components.seconds)
            status.member("sessions", service.sessions.current)
            status.key("backends")
            status.object { backends in
                for backend in service.backends { backends.member(backend.name, backend.status.state.rawValue) }
            }
            status.member("configuration", service.configuration.file)
        }
    }
}

extension JSONWriter {
    /// What a client may want to know of the limits, by their names in the configuration.
    fileprivate mutating func members(of limits: Configuration.Limits) {
        member("frame_bytes", limits.frameBytes)
        member("item_bytes", limits.itemBytes)
        member("json_depth", limits.jsonDepth)
        member("query_limit", limits.queryLimit)
        member("batch", limits.batch)
        member("inflight_per_session", limits.inflightPerSession)
    }
}
