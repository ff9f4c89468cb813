import ArgumentParser

/// Executes `crudd-plugin-host --check`, so that crudctl needs neither a daemon nor plugin code.
struct CheckPlugin: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-plugin",
        abstract: "Checks a storage plugin against the plugin contract, without a daemon, and prints a report.",
        discussion: """
            The checks write to the storage that the options name, in collections of their own, which they remove \
            afterwards; nothing else may use it meanwhile. Exit statuses: 0 the plugin conforms; 69 its storage is not \
            available; 70 it does not conform; 78 the plugin or its options are invalid.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The plugin.", completion: .file(extensions: ["so"]))
    var path: String
    @Option(name: .customLong("options"), help: "The plugin's options, in YAML (default: none).")
    var pluginOptions: String?

    func run() async throws {
        try CompanionProgram.pluginHost.execute(["--check", path] + (pluginOptions.map { ["--options", $0] } ?? []))
    }
}
