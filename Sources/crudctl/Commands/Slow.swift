import ArgumentParser
import CRUDJSON

struct Slow: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists the latest slow requests, the newest first.",
        discussion: "Those that took longer than log.slow of the configuration; in JSON times are in seconds.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Option(help: ArgumentHelp("How many requests at most.", valueName: "count")) var limit: Int?

    func run() async throws {
        let result = try await call("daemon.slowLog") { params in
            if let limit { params.member("limit", limit) }
        }
        try show(
            result, list: "entries",
            notations: ["at": .instant, "seconds": .duration, "waited": .duration, "plan": .whole])
    }
}
