import CRUDConfiguration
import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDStorage
import CRUDWire
import Glibc

/// The methods that concern the daemon as a whole and reply at once.
final class AdministrationHandler {
    private let loop: LoopState

    init(_ loop: LoopState) {
        self.loop = loop
    }

    func listBackends(_ call: borrowing Call) {
        let backends = loop.service.backends
        call.reply { output in
            output.appendObject { $0.member("backends", objects: backends) { $0.describe(to: &$1) } }
        }
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
                status.member("configuration", service.configuration.file)
            }
        }
    }

    func discover(_ call: borrowing Call) {
        call.reply { $0.append(Array(OpenRPCDocument.text(version: CRUDVersion.current)).span) }
    }
}

extension Backend {
    fileprivate func describe(to description: inout JSONWriter) {
        let status = status
        description.member("name", name)
        description.member(plugin.isCommand ? "command" : "plugin", plugin.name)
        let isolation: BackendConfiguration.Isolation = plugin.isChild ? .process : .inline
        description.member("isolation", isolation.rawValue)
        description.member("state", status.state.rawValue)
        if plugin.isChild {
            description.member("restarts", status.restarts)
            if let pid = status.pid { description.member("pid", pid) }
        }
        description.member("capabilities", strings: capabilities.names)
        if let error = status.lastError { description.member("lastError", error) }
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
