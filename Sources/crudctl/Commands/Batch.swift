import ArgumentParser
import CRUDJSON
import CRUDModel
import CRUDWire

struct Batch: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Executes several operations in order and prints the result of each.",
        discussion: """
            Each line of FILE is an operation as record.batch takes it, such as \
            {"op": "delete", "collection": "clients", "id": "ada"}; there may be as many as limits.batch of the \
            configuration says (1000). The exit status is that of the first operation that failed.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The operations, in NDJSON; - (or nothing) for standard input.", completion: .file())
    var file = "-"
    @Flag(help: "All operations take effect, or none.") var atomic = false

    func run() async throws {
        let text = try TextSource(file: file).text("operations (NDJSON)")
        let lines = text.split(separator: UInt8(ascii: "\n")).filter { line in
            !line.allSatisfy { [UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r")].contains($0) }
        }
        for (index, line) in lines.enumerated() { try RawJSON.check(Array(line), what: "operation \(index)") }
        let result: [UInt8]
        do {
            result = try await call("record.batch") { params in
                params.key("operations")
                params.array { operations in
                    for line in lines { operations.raw(line) }
                }
                if atomic { params.member("atomic", true) }
            }
        } catch let error as CRUDError {
            // The batch as a whole has failed, perhaps because of one operation.
            throw error.details.index.map(error.inOperation) ?? error
        }
        try show(result, list: "results", notations: ["error": .error])
        for (index, entry) in (ResultObject(result)?.elements("results") ?? []).enumerated() {
            guard let text = ResultObject(Array(entry))?.value("error"),
                let error = CRUDError(errorObject: Array(text))
            else { continue }
            throw error.inOperation(index)
        }
    }
}

extension CRUDError {
    /// This error, with the operation to which it belongs, counted from 0.
    fileprivate func inOperation(_ index: Int) -> CRUDError {
        var error = self
        error.message = "operation \(index): \(message)"
        error.details.index = index
        return error
    }
}
