import CRUDModel
import Glibc

extension ConfigurationDecoder {
    private enum RootKey: String, CaseIterable {
        case stateDirectory = "state_directory"
        case socket, plugins, backends, collections, access, cache, loops
        case busyPoll = "busy_poll"
        case limits, log
    }

    private enum SocketKey: String, CaseIterable {
        case path, mode, group
    }

    private enum PluginsKey: String, CaseIterable {
        case directories
    }

    private enum CacheKey: String, CaseIterable {
        case bytes
    }

    private enum LogKey: String, CaseIterable {
        case level, slow
    }

    /// The configuration, without backends that have an error; valid only if there are no ``diagnostics`` afterwards.
    mutating func configuration(_ root: YAMLNode?) -> Configuration? {
        guard let root else {
            report(.start, "the file is empty: at least \"backends\" is needed")
            return nil
        }
        guard let fields = fields(root, RootKey.self) else { return nil }
        let pluginDirectories = pluginDirectories(fields[.plugins])
        let log = log(fields[.log])
        let backendsNode = required(.backends, in: fields, of: "the configuration")
        return Configuration(
            file: file, positions: positions(fields), stateDirectory: stateDirectory(fields[.stateDirectory]),
            socket: socket(fields[.socket]),
            pluginDirectories: pluginDirectories.sound,
            backends: backendsNode.map { backends($0, pluginDirectories: pluginDirectories) } ?? [],
            collections: collections(fields[.collections], backends: backendsNode),
            access: AccessPolicy(rules: fields[.access].map { accessRules($0) }, daemonUID: geteuid()),
            loops: loops(fields[.loops]), cacheBytes: cacheBytes(fields[.cache]),
            busyPoll: busyPoll(fields[.busyPoll]), limits: limits(fields[.limits]), logLevel: log.level,
            slowRequest: log.slow, root: root)
    }

    private func positions(_ fields: Fields<RootKey>) -> Configuration.Positions {
        var positions = Configuration.Positions()
        func find(_ key: SocketKey) -> SourcePosition? { fields[.socket]?.child(Array(key.rawValue.utf8))?.position }
        if let node = fields[.stateDirectory] { positions.stateDirectory = node.position }
        if let position = find(.path) { positions.socketPath = position }
        if let position = find(.group) { positions.socketGroup = position }
        return positions
    }

    private mutating func stateDirectory(_ node: YAMLNode?) -> String {
        if let node { return absolutePath(node) ?? "/" }
        // systemd separates several directories with colons; the first is the daemon's (systemd.exec(5)).
        guard let path = environment["STATE_DIRECTORY"]?.split(separator: ":").first else {
            return Configuration.defaultStateDirectory
        }
        if !path.hasPrefix("/") {
            report(.start, "\"state_directory\" is not given, and $STATE_DIRECTORY is not an absolute path")
        }
        return String(path)
    }

    private mutating func socket(_ node: YAMLNode?) -> Configuration.Socket {
        var socket = Configuration.Socket()
        guard let node, let fields = fields(node, SocketKey.self) else { return socket }
        if let node = fields[.path], let path = absolutePath(node) {
            let maximum = Configuration.Socket.maximumPathBytes
            if path.utf8.count > maximum {
                report(node.position, "the path has \(path.utf8.count) bytes, a socket's at most \(maximum)")
            }
            socket.path = path
        }
        if let node = fields[.mode], let mode = scalar(node, "an octal mode such as \"0660\"", parse: Self.mode) {
            socket.mode = mode
        }
        if let node = fields[.group], let group = account(node, "group", lookUp: Accounts.group) {
            socket.group = Configuration.SocketGroup(name: group.name, id: group.id)
        }
        return socket
    }

    /// Three octal digits, a zero before them or not.
    private static func mode(_ text: [UInt8]) -> UInt32? {
        guard text.allSatisfy(isDigit), text.count == 3 || text.count == 4 && text[0] == UInt8(ascii: "0") else {
            return nil
        }
        return UInt32(String(decoding: text, as: UTF8.self), radix: 8)
    }

    private mutating func pluginDirectories(_ node: YAMLNode?) -> PluginDirectories {
        let countBefore = diagnostics.count
        let list = node.flatMap { fields($0, PluginsKey.self) }?[.directories]
        let sound = list.map { (elements($0, "a list of directories") ?? []).compactMap { absolutePath($0) } }
        return PluginDirectories(
            sound: sound ?? [Self.defaultPluginDirectory], areAll: diagnostics.count == countBefore)
    }

    /// `lib/crudd/plugins` beside the directory of the program, where an installation has it; else that of the
    /// packages.
    private static var defaultPluginDirectory: String {
        let packaged = "/usr/lib/crudd/plugins"
        guard let program = realpath("/proc/self/exe", nil) else { return packaged }
        defer { free(program) }
        let folders = String(cString: program).split(separator: "/").dropLast(2).map { "/\($0)" }
        let installed = folders.joined() + "/lib/crudd/plugins"
        return access(installed, F_OK) == 0 ? installed : packaged
    }

    /// The number of event loops; nil stands for `auto`.
    private mutating func loops(_ node: YAMLNode?) -> Int? {
        guard let node else { return nil }
        if case .scalar(let text, _) = node.content, text.elementsEqual("auto".utf8) { return nil }
        return scalar(node, "auto or 1 to 16") { text in
            Quantity.count.value(text).flatMap { (1...16).contains($0) ? $0 : nil }
        }
    }

    private mutating func cacheBytes(_ node: YAMLNode?) -> Int {
        let fields = node.flatMap { self.fields($0, CacheKey.self) }
        return quantity(fields?[.bytes], .size, in: 0...LimitDefinitions.anySize.upperBound)
            ?? Configuration.defaultCacheBytes
    }

    private mutating func busyPoll(_ node: YAMLNode?) -> Duration {
        .microseconds(
            quantity(node, .duration, in: LimitDefinitions.busyPoll) ?? Configuration.defaultBusyPollMicroseconds)
    }

    private mutating func log(_ node: YAMLNode?) -> (level: Configuration.LogLevel, slow: Duration) {
        let fields = node.flatMap { self.fields($0, LogKey.self) }
        let slow = quantity(fields?[.slow], .duration, in: LimitDefinitions.slowRequest)
        return (
            fields?[.level].flatMap { choice($0, "level") } ?? .info,
            .microseconds(slow ?? Configuration.defaultSlowRequestMicroseconds)
        )
    }
}
