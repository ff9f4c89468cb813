import ArgumentParser
import Glibc

/// Runs `crudd-plugin-check`, so that crudctl needs neither a daemon nor plugin code.
struct CheckPlugin: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-plugin",
        abstract: "Checks a storage plugin against the plugin contract, without a daemon, and prints a report.",
        discussion: """
            The checks write to the storage that the options name, in collections of their own, which they remove \
            afterwards; nothing else may use it meanwhile. Exit statuses: 0 the plugin conforms; 69 its storage is not \
            available; 70 it does not conform; 78 the plugin or its options are invalid. The report is text, unless \
            --output says otherwise.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The plugin.", completion: .file(extensions: ["so"]))
    var path: String
    @Option(name: .customLong("options"), help: "The plugin's options, in YAML (default: none).")
    var pluginOptions: String?

    func run() async throws {
        let arguments =
            [CompanionProgram.argument(path: path)] + (pluginOptions.map { ["--options", $0] } ?? [])
        guard let format = options.output, format != .table else {
            let outcome = try CompanionProgram.pluginCheck.run(arguments, printsOutput: true)
            // The report has said what does not conform. The rest is what the plugin itself has printed, line by line.
            guard outcome.status != EX_SOFTWARE else {
                StandardError.write(outcome.errors)
                throw ExitCode(outcome.status)
            }
            return try outcome.end(asJSON: false)
        }
        let outcome = try CompanionProgram.pluginCheck.run(arguments)
        if let report = PluginReport(outcome.output) { try show(report.json, list: "checks") }
        try outcome.end(asJSON: format == .json)
    }
}
