import CRUDJSON
import CRUDModel

extension Configuration {
    /// A setting that is in force.
    package struct Setting: Sendable, Equatable {
        /// Where its value comes from.
        package enum Source: String, Sendable {
            case file
            case `default`
            /// $STATE_DIRECTORY.
            case environment
            /// The socket that systemd has passed.
            case systemd
            /// The file that the daemon was started with; it says otherwise by now.
            case start
            /// `daemon.logLevel`.
            case logLevel
        }

        /// With dots between the names.
        package var key: String
        /// As it would be written in the file.
        package var value: String
        package var source: Source

        package init(_ key: String, _ value: String, _ source: Source) {
            self.key = key
            self.value = value
            self.source = source
        }
    }

    /// All settings, those that the file does not have included.
    package var settings: [Setting] {
        var list = SettingList(root: root)
        let ownStateDirectory: Setting.Source = stateDirectory == Self.defaultStateDirectory ? .default : .environment
        list.append(["state_directory"], stateDirectory, otherwise: ownStateDirectory)
        list.append(["socket", "path"], socket.path)
        list.append(["socket", "mode"], "0" + String(socket.mode, radix: 8))
        list.append(["socket", "group"], socket.group?.name ?? "that of the daemon")
        list.append(["plugins", "directories"], SettingList.text(pluginDirectories))
        for backend in backends { list.append(backend) }
        for rule in collections.rules { list.append(rule) }
        list.append(access.rules)
        list.append(["cache", "bytes"], Quantity.size.text(cacheBytes))
        list.append(["loops"], loops.map(String.init) ?? "auto")
        list.append(["busy_poll"], Quantity.duration.text(busyPoll.microseconds))
        for limit in LimitDefinitions.all {
            list.append(["limits", limit.key.rawValue], limit.kind.text(limits[keyPath: limit.value]))
        }
        list.append(["log", "level"], logLevel.rawValue)
        if hasOwnLogLevel { list.replaceLast(source: .logLevel) }
        list.append(["log", "slow"], Quantity.duration.text(slowRequest.microseconds))
        return list.settings
    }
}

/// Gathers settings with their sources.
private struct SettingList {
    let root: YAMLNode
    private(set) var settings: [Configuration.Setting] = []

    init(root: YAMLNode) {
        self.root = root
    }

    /// - Parameter otherwise: the source where the file does not have it.
    mutating func append(_ path: [String], _ value: String, otherwise: Configuration.Setting.Source = .default) {
        var node: YAMLNode? = root
        for name in path { node = node?.child(Array(name.utf8)) }
        settings.append(
            Configuration.Setting(path.joined(separator: "."), value, node == nil ? otherwise : .file))
    }

    mutating func replaceLast(source: Configuration.Setting.Source) {
        settings[settings.count - 1].source = source
    }

    mutating func append(_ backend: BackendConfiguration) {
        let path = ["backends", backend.name]
        switch backend.implementation {
        case .plugin(let plugin): append(path + ["plugin"], plugin)
        case .command(let words): append(path + ["command"], Self.text(words))
        }
        append(path + ["isolation"], backend.isolation.rawValue)
        append(path + ["cache"], String(backend.cachesRecords))
        if backend.isolation == .process {
            append(path + ["limits", "memory"], backend.limits.memoryBytes.map(Quantity.size.text) ?? "none")
            let timeout = backend.limits.callTimeout.map { Quantity.duration.text($0.microseconds) }
            append(path + ["limits", "call_timeout"], timeout ?? "none")
        }
        if let digest = backend.sha256 { append(path + ["sha256"], digest) }
        append(path + ["options"], String(decoding: backend.options, as: UTF8.self))
    }

    mutating func append(_ rule: CollectionRule) {
        let path = ["collections", rule.pattern.text]
        append(path + ["backend"], rule.backend)
        append(path + ["format"], rule.format.rawValue)
        append(path + ["indexes"], Self.text(rule.indexes))
        append(path + ["move"], String(rule.moves))
        let retention = rule.changes.map { "{retention: \(Quantity.duration.text($0.retention.microseconds))}" }
        append(path + ["changes"], retention ?? "false")
    }

    /// - Parameter rules: nil: the file has no section `access`.
    mutating func append(_ rules: [AccessRule]?) {
        guard let rules else { return append(["access"], "everybody may read and write") }
        if rules.isEmpty { append(["access"], "[]") }
        for (index, rule) in rules.enumerated() {
            var members: [String] = []
            if let users = rule.users { members.append("users: \(Self.text(users.map { String($0) }))") }
            if let groups = rule.groups { members.append("groups: \(Self.text(groups.map { String($0) }))") }
            if let collections = rule.collections {
                members.append("collections: \(Self.text(collections.map(\.text)))")
            }
            members.append("allow: \(Self.text(rule.allow.words))")
            if let limits = rule.limits { members.append("limits: {\(Self.text(limits))}") }
            append(["access", String(index)], "{\(members.joined(separator: ", "))}")
        }
    }

    private static func text(_ limits: UserLimits) -> String {
        let rate = limits.requestsPerSecond.map { ["requests_per_second: \($0)"] } ?? []
        let quotas = limits.quotas.map { name, maximum in
            "\(name): \(name == "bytes" ? Quantity.size.text(maximum) : String(maximum))"
        }
        return (rate + quotas).joined(separator: ", ")
    }

    /// A list as YAML: what may mean something else in it is quoted.
    static func text(_ elements: [String]) -> String {
        let texts = elements.map { element in
            let isPlain = element.utf8.allSatisfy { byte in
                isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                    || "/._-".utf8.contains(byte)
            }
            guard !isPlain || element.isEmpty else { return element }
            var quoted: [UInt8] = []
            quoted.appendJSONString(element.utf8)
            return String(decoding: quoted, as: UTF8.self)
        }
        return "[\(texts.joined(separator: ", "))]"
    }
}
