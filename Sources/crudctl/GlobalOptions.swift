import ArgumentParser

/// The options of every command. They may be given before or after the command's name.
struct GlobalOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The daemon's socket (default: $CRUDD_SOCKET, else /run/crudd/crudd.sock).", valueName: "path"),
        completion: .file())
    var socket: String?

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "How results are printed (default: table on a terminal, json otherwise).", valueName: "format"))
    var output: OutputFormat?

    @Flag(name: .customLong("no-color"), help: "Print without colors, as with $NO_COLOR.")
    var noColor = false

    @Flag(name: .customLong("no-pager"), help: "Print what is longer than the screen without a pager.")
    var noPager = false

    @Option(help: ArgumentHelp("How long to wait for the daemon (default: 30).", valueName: "seconds"))
    var timeout: Double?

    func validate() throws {
        if let timeout, !(timeout > 0 && timeout <= 1e9) {
            throw ValidationError("--timeout must be a number of seconds over 0.")
        }
    }
}
