import ArgumentParser
import CRUDConfiguration
import CRUDModel
import CRUDServer
import Glibc

/// The daemon's command line; everything it does is elsewhere.
@main
struct Command: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "crudd", abstract: "Serves CRUD on a Unix socket, with storage adapters as plugins.",
        version: "crudd \(CRUDVersion.current)")

    @Option(help: "The configuration file.")
    var config = "/etc/crudd/crudd.yaml"

    @Flag(help: "Check the configuration, plugins and their options included, touching no storage, and exit.")
    var check = false

    @Flag(help: "Start although collections would lose sight of their records.")
    var force = false

    @Argument(help: ArgumentHelp("With --check: the file to check.", valueName: "file"))
    var file: String?

    func validate() throws {
        if file != nil, !check { throw ValidationError("A file is given with --config, or behind --check.") }
    }

    func run() throws {
        do {
            let configuration = try Configuration.load(path: file ?? config, environment: Self.environment)
            if check {
                _ = try PluginSet(configuration)
            } else {
                try Daemon(configuration, manager: ServiceManager()).run(force: force)
            }
        } catch let invalid as InvalidConfiguration {
            Self.complain(invalid.faults.map(\.description))
            throw ExitCode(StartFailure.Status.configuration.rawValue)
        } catch let failure as StartFailure {
            Self.complain(failure.lines)
            throw ExitCode(failure.status.rawValue)
        }
    }

    private static var environment: [String: String] {
        getenv("STATE_DIRECTORY").map { ["STATE_DIRECTORY": String(cString: $0)] } ?? [:]
    }

    private static func complain(_ lines: [String]) {
        let text = Array(lines.map { $0 + "\n" }.joined().utf8)
        _ = text.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
