import CRUDConfiguration

/// The settings that a running daemon cannot change: where it listens, where it keeps its state, and on how many loops
/// it serves.
struct FixedSettings: Sendable {
    /// Nil where systemd has made the sockets, so that the configuration does not matter.
    let socket: Configuration.Socket?
    let stateDirectory: String
    /// Nil for `auto`.
    let loops: Int?

    /// The settings of a configuration as far as they are in force: of these, what they were at the start.
    func settings(of configuration: Configuration) -> [Configuration.Setting] {
        var fixed = ["state_directory": stateDirectory, "loops": loops.map(String.init) ?? "auto"]
        if let socket {
            fixed["socket.path"] = socket.path
            fixed["socket.mode"] = "0" + String(socket.mode, radix: 8)
            fixed["socket.group"] = socket.group?.name ?? "that of the daemon"
        }
        var settings = configuration.settings
        for (index, setting) in settings.enumerated() {
            guard let value = fixed[setting.key], value != setting.value else { continue }
            settings[index] = Configuration.Setting(setting.key, value, .start)
        }
        guard socket == nil else { return settings }
        settings.removeAll { $0.key.hasPrefix("socket.") }
        return [Configuration.Setting("socket", "passed by systemd", .systemd)] + settings
    }

    /// A line for each setting that a new configuration has differently.
    func changes(in new: Configuration) -> [String] {
        var changes: [String] = []
        func compare(_ name: String, _ old: String, _ new: String) {
            guard old != new else { return }
            changes.append("\(name): stays \(old) until the daemon is restarted, then \(new)")
        }
        if let socket {
            compare("socket.path", socket.path, new.socket.path)
            compare("socket.mode", String(socket.mode, radix: 8), String(new.socket.mode, radix: 8))
            compare("socket.group", socket.group?.name ?? "unset", new.socket.group?.name ?? "unset")
        }
        compare("state_directory", stateDirectory, new.stateDirectory)
        compare("loops", loops.map(String.init) ?? "auto", new.loops.map(String.init) ?? "auto")
        return changes
    }
}
