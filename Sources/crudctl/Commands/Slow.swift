import ArgumentParser
import CRUDJSON
import CRUDWire

struct Slow: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists the latest slow requests, the newest first.",
        discussion: """
            Those that took longer than log.slow of the configuration. Of a filter the shape is shown, with ? in place \
            of values. In JSON times are in seconds.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Option(help: ArgumentHelp("How many requests at most.", valueName: "count")) var limit: Int?

    func run() async throws {
        let result = try await call("daemon.slowLog") { params in
            if let limit { params.member("limit", limit) }
        }
        guard printer.format == .table, let entries = ResultObject(result)?.elements("entries"), !entries.isEmpty
        else { return try show(result, list: "entries") }
        let output = printer.output
        try SlowRequestList(terminal: printer.terminal).write(
            entries.compactMap { ResultObject(Array($0)) }, to: output)
        try output.end()
    }
}
