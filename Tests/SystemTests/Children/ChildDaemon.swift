import CRUDTestSupport
import Glibc
import Testing

/// A daemon some of whose backends run in children.
struct ChildDaemon {
    let daemon: Daemon

    /// The backends and the files that they run; `$DIRECTORY` stands for the installation's directory.
    ///
    /// - `inline`: SQLite in the daemon
    /// - `sqlite`: SQLite in a child
    /// - `other`: SQLite in another one
    /// - `gated`: a plugin in a child whose writes never return, as they wait
    /// - `busy`: a plugin in a child whose writes never return, as they compute
    /// - `store`: the example in Python
    /// - `unruly`: the same, which misbehaves on demand
    ///
    /// Each collection is in the backend of its name.
    ///
    /// - Parameters:
    ///   - limits: of `unruly`.
    ///   - unruly: further options of `unruly`.
    ///   - serverLimits: the configuration's own.
    init(
        _ backends: [String] = ["inline", "sqlite", "unruly"], limits: String = "", unruly: String = "",
        serverLimits: String? = nil
    ) throws {
        let installation = try Self.installation(
            backends, limits: limits, unruly: unruly, serverLimits: serverLimits)
        daemon = try Daemon(on: installation)
    }

    static func installation(
        _ backends: [String], limits: String = "", unruly: String = "", serverLimits: String? = nil
    ) throws -> Installation {
        let python = "/usr/bin/python3, $DIRECTORY"
        let definitions = [
            "inline": "{plugin: sqlite, options: {path: $DIRECTORY/inline.sqlite}}",
            "sqlite": "{plugin: sqlite, isolation: process, options: {path: $DIRECTORY/child.sqlite}}",
            "other": "{plugin: sqlite, isolation: process, options: {path: $DIRECTORY/other.sqlite}}",
            "memory": "{plugin: memory, isolation: process}",
            "gated": "{plugin: scripted, isolation: process, options: {gated: 1}}",
            "busy": "{plugin: scripted, isolation: process, options: {busy: 1}}",
            "store": "{command: [\(python)/store.py], options: {path: $DIRECTORY/store.db}}",
            "unruly": """
            {command: [\(python)/unruly.py, $DIRECTORY/store.py], limits: {\(limits)}, \
            options: {path: $DIRECTORY/unruly.db\(unruly)}}
            """,
        ]
        let installation = try Installation(
            Configuration(
                backends: backends.map { "\($0): \(definitions[$0] ?? "")" }.joined(separator: "\n"),
                collections: backends.map { "\($0): {backend: \($0)}" }.joined(separator: "\n"),
                limits: serverLimits))
        let sources = BuildProducts.packageDirectory
        try Files.copy("\(sources)/Tests/Plugins/unruly.py", to: "\(installation.path)/unruly.py", mode: 0o755)
        if !Set(backends).isDisjoint(with: ["gated", "busy"]) {
            try CompiledPlugin.compile("scripted.c", to: "\(installation.pluginDirectory)/scripted.so")
        }
        return installation
    }

    /// How a backend is.
    struct Status {
        let state: String
        let restarts: Int
        let pid: pid_t?
        let lastError: String?
        let json: JSON
    }

    static func status(of backend: String, _ connection: Connection) throws -> Status {
        let backends = try connection.call("backend.list").result?["backends"]?.elements
        let json = try #require(backends?.first { $0["name"]?.string == backend })
        return Status(
            state: json["state"]?.string ?? "", restarts: json["restarts"]?.integer ?? -1,
            pid: json["pid"]?.integer.map(pid_t.init), lastError: json["lastError"]?.string, json: json)
    }

    /// Waits until a backend is ready with another child than `old`.
    @discardableResult
    static func awaitReady(
        _ backend: String, notWith old: pid_t?, _ connection: Connection
    ) throws -> Status {
        let deadline = Deadline()
        while true {
            let status = try status(of: backend, connection)
            if status.state == "ready", status.pid != old { return status }
            try #require(!deadline.hasPassed, "\(status.json)")
        }
    }

    /// Whether a process is there and not just waited for.
    static func isAlive(_ pid: pid_t) -> Bool {
        guard let status = try? String(decoding: Files.read("/proc/\(pid)/stat"), as: UTF8.self) else { return false }
        return status.split(separator: ")").last?.dropFirst().first != "Z"
    }
}
