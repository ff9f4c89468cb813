import ArgumentParser
import CRUDWire

struct Metrics: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints the daemon's metrics.",
        discussion: """
            The text is in OpenMetrics format, in a pipe as on a terminal; -o json prints it as the daemon has sent \
            it, as a member of an object.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions

    func run() async throws {
        let result = try await call("daemon.metrics")
        guard options.output == nil || options.output == .table, let text = ResultObject(result)?.string("text") else {
            return try show(result)
        }
        try StandardOutput.page(Array(text.utf8), isComposed: false)
    }
}
