import ArgumentParser

/// Becomes `crudd-plugin-host --check`, so that crudctl needs neither a daemon nor plugin code of its own.
struct CheckPlugin: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-plugin",
        abstract: "Checks a storage plugin against the plugin contract, without a daemon, and prints a report.",
        discussion: """
            The checks write to the storage that the options name, in collections of their own, which they remove \
            afterwards; nobody else may use it meanwhile. Exit statuses: 0 the plugin keeps the contract; 69 its \
            storage is not available; 70 it does not keep the contract; 78 the plugin or its options have a fault.
            """)

    @ParentCommand var root: Crudctl
    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The plugin.", completion: .file(extensions: ["so"]))
    var path: String
    @Option(name: .customLong("options"), help: "What the plugin is told, in YAML (default: nothing).")
    var pluginOptions: String?

    func run() async throws {
        try CompanionProgram.pluginHost.become(["--check", path] + (pluginOptions.map { ["--options", $0] } ?? []))
    }
}
