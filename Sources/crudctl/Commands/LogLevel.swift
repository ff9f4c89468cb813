import ArgumentParser
import CRUDJSON

struct LogLevel: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "log-level", abstract: "Has the daemon log more, or less, until its next reload.")

    static let levels = ["trace", "debug", "info", "notice", "warning", "error", "critical"]

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(
        help: "trace, debug, info, notice, warning, error or critical: what is logged at least.",
        completion: .list(Self.levels))
    var level: String

    func validate() throws {
        guard !Self.levels.contains(level) else { return }
        throw ValidationError("LEVEL must be one of \(Self.levels.joined(separator: ", ")).")
    }

    func run() async throws {
        try show(try await call("daemon.logLevel") { $0.member("level", level) })
    }
}
