/// A directory with all that a daemon needs: plugins, a configuration, its state and its socket.
package final class Installation: Sendable {
    private let directory: TemporaryDirectory

    package var path: String { directory.path }
    package var pluginDirectory: String { "\(path)/plugins" }
    package var configurationFile: String { "\(path)/crudd.yaml" }
    package var socketPath: String { "\(path)/crudd.sock" }

    /// With the given configuration, the SQLite plugin, and the other plugins of this package that the configuration
    /// names: `example` is the example in C, `$DIRECTORY/store.py` the one in Python.
    package convenience init(_ configuration: Configuration = Configuration()) throws {
        try self.init(text: configuration.text)
    }

    /// With the text of a configuration; `$DIRECTORY` stands for the directory.
    package init(text: String) throws {
        directory = try TemporaryDirectory()
        try Files.makeDirectory("\(directory.path)/plugins")
        try Files.makeDirectory("\(directory.path)/state", mode: 0o700)
        for name in ["sqlite", "memory", "filesystem", "userdefaults", "postgresql"]
        where name == "sqlite" || text.contains("plugin: \(name)") {
            try Files.copy(BuildProducts.path(of: "lib\(name).so"), to: "\(pluginDirectory)/\(name).so", mode: 0o755)
        }
        if text.contains("plugin: example") {
            try CompiledPlugin.compile(example: "memory.c", to: "\(pluginDirectory)/example.so")
        }
        if text.contains("$DIRECTORY/store.py") {
            let source = "\(BuildProducts.packageDirectory)/Plugins/Examples/store.py"
            try Files.copy(source, to: "\(path)/store.py", mode: 0o755)
        }
        try configure(text: text)
    }

    /// Replaces the configuration file.
    package func configure(_ configuration: Configuration) throws {
        try configure(text: configuration.text)
    }

    /// Replaces the configuration file.
    package func configure(text: String) throws {
        var pieces: [Substring] = []
        var rest = text[...]
        while let range = rest.firstRange(of: "$DIRECTORY") {
            pieces += [rest[..<range.lowerBound], path[...]]
            rest = rest[range.upperBound...]
        }
        try Files.write((pieces + [rest]).joined(), to: configurationFile)
    }

    /// Runs `crudd --check` on the configuration file, its commands included.
    package func check() throws -> Command.Outcome {
        try Command.run(BuildProducts.path(of: "crudd"), ["--check", configurationFile, "--run-commands"])
    }

    /// Runs a daemon that is expected to fail to start.
    package func startInVain(
        _ arguments: [String] = [], environment: [String: String] = [:]
    ) throws -> Command.Outcome {
        try Command.run(
            BuildProducts.path(of: "crudd"), ["--config", configurationFile] + arguments, environment: environment)
    }
}
