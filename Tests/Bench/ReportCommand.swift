import ArgumentParser

/// Prints the results of a run as tables.
struct ReportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report", abstract: "Print the results of a run as Markdown tables, with medians and ratios.")

    @Argument(help: "A file of the lines that load and start print.")
    var path: String

    func run() throws {
        print(Report(try Finding.read(path)).markdown)
    }
}
