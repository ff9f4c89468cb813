import ArgumentParser

/// Compares the results of two runs; fails if a row has fallen.
struct CompareCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "compare", abstract: "Compare two results; fails if a row has fallen by more than allowed.")

    @Argument(help: "The JSON of the run before.")
    var before: String
    @Argument(help: "The JSON of the run after.")
    var after: String
    @Option(help: "By how many percent a row may fall.")
    var fall = 10.0

    func validate() throws {
        guard 0..<100 ~= fall else { throw ValidationError("--fall must be 0 to 99") }
    }

    func run() throws {
        let comparison = Comparison(
            Report(try Finding.read(before)), Report(try Finding.read(after)), allowedFall: fall)
        guard !comparison.isEmpty else { throw BenchError("the results have no row in common") }
        print(comparison.markdown)
        guard comparison.fallen == 0 else {
            StandardError.print("rows that have fallen by more than \(fall.text(digits: 0)) %: \(comparison.fallen)")
            throw ExitCode.failure
        }
    }
}
