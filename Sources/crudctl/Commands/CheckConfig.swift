import ArgumentParser

/// Executes `crudd --check`, so that crudctl needs neither a daemon nor a YAML parser.
struct CheckConfig: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-config",
        abstract: "Checks a configuration file, without a daemon, and prints every error with its position.",
        discussion: "With -o json the errors are one error object, with the position of the first.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The file (default: /etc/crudd/crudd.yaml).", completion: .file(extensions: ["yaml", "yml"]))
    var file: String?

    func run() async throws {
        let arguments = ["--check"] + (file.map { [CompanionProgram.argument(path: $0)] } ?? [])
        guard options.output == .json else { try CompanionProgram.daemon.execute(arguments) }
        try CompanionProgram.daemon.run(arguments).end(asJSON: true)
    }
}
