import ArgumentParser

/// Executes `crudd --check`, so that crudctl needs neither a daemon nor a YAML parser.
struct CheckConfig: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-config",
        abstract: "Checks a configuration file, without a daemon, and prints every error with its position.",
        discussion: """
            The commands of backends are not executed, which could do anything, unless --run-commands is given; what \
            was not checked is said. Without FILE it is also an error if others may write to the file. With -o json \
            the errors are one error object, with the position of the first.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The file (default: /etc/crudd/crudd.yaml).", completion: .file(extensions: ["yaml", "yml"]))
    var file: String?
    @Flag(
        name: .customLong("run-commands"),
        help: "Have each command of a backend check its options, too, which executes it.")
    var runsCommands = false

    func run() async throws {
        let outcome = try CompanionProgram.daemon.run(
            ["--check"] + (file.map { [CompanionProgram.argument(path: $0)] } ?? [])
                + (runsCommands ? ["--run-commands"] : []))
        try StandardOutput.write(outcome.output.utf8)
        guard options.output != .json else { return try outcome.end(asJSON: true) }
        // Lines with positions, as compilers print them.
        StandardError.write(outcome.errors)
        if outcome.status != 0 { throw ExitCode(outcome.status) }
    }
}
