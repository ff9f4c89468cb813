/// The text of a configuration, by section. `$DIRECTORY` stands for the installation's directory.
package struct Configuration: Sendable {
    /// Further lines of `socket:`.
    package var socket: String
    /// The entries of `plugins.directories:`.
    package var pluginDirectories: String
    /// The lines of `backends:`.
    package var backends: String
    /// The lines of `collections:`.
    package var collections: String
    /// The lines of `access:`; nil leaves the section out.
    package var access: String?
    /// The lines of `limits:`; nil leaves the section out.
    package var limits: String?
    /// How long a request may take unless `limits` says it: no test is about the time that a busy machine has for one;
    /// nil leaves it to the daemon.
    package var requestTimeout: String?
    /// The number of event loops; nil leaves it to the daemon.
    package var loops: Int?
    /// How much the record cache may take; nil leaves it to the daemon.
    package var cache: String?

    /// By default, every collection in one SQLite database.
    package init(
        socket: String = "", pluginDirectories: String = "$DIRECTORY/plugins",
        backends: String = "main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}",
        collections: String = "\"*\": {backend: main}", access: String? = nil, limits: String? = nil,
        requestTimeout: String? = "5m", loops: Int? = nil, cache: String? = nil
    ) {
        self.socket = socket
        self.pluginDirectories = pluginDirectories
        self.backends = backends
        self.collections = collections
        self.access = access
        self.limits = limits
        self.requestTimeout = requestTimeout
        self.loops = loops
        self.cache = cache
    }

    /// The file's content.
    package var text: String {
        var text = "state_directory: $DIRECTORY/state\n"
        text += Self.section("socket", "path: $DIRECTORY/crudd.sock\n\(socket)")
        text += Self.section("plugins", "directories: [\(pluginDirectories)]")
        text += Self.section("backends", backends)
        text += Self.section("collections", collections)
        if let access { text += Self.section("access", access) }
        var limits = limits
        if let requestTimeout, limits?.contains("request_timeout:") != true {
            limits = "request_timeout: \(requestTimeout)\n" + (limits ?? "")
        }
        if let limits { text += Self.section("limits", limits) }
        if let loops { text += "loops: \(loops)\n" }
        if let cache { text += "cache: {bytes: \(cache)}\n" }
        return text
    }

    private static func section(_ name: String, _ lines: String) -> String {
        "\(name):\n" + lines.split(separator: "\n").map { "  \($0)\n" }.joined()
    }
}
