import ArgumentParser

/// Executes `crudd --check`, so that crudctl needs neither a daemon nor a YAML parser.
struct CheckConfig: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-config",
        abstract: "Checks a configuration file, without a daemon, and prints every error with its position.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The file (default: /etc/crudd/crudd.yaml).", completion: .file(extensions: ["yaml", "yml"]))
    var file: String?

    func run() async throws {
        try CompanionProgram.daemon.execute(["--check"] + (file.map { [$0] } ?? []))
    }
}
