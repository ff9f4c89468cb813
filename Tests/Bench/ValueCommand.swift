import ArgumentParser
import Glibc

/// Prints a value, for other load generators.
struct ValueCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "value", abstract: "Print the value of a record, the same that load writes.")

    @Option(help: "Bytes of a value.")
    var valueBytes = 200
    @Option(help: "The record.")
    var record: UInt64 = 0

    func validate() throws {
        guard valueBytes >= RequestTemplate.minimumValueBytes else {
            throw ValidationError("--value-bytes must be at least \(RequestTemplate.minimumValueBytes)")
        }
    }

    func run() throws {
        let template = RequestTemplate(RequestTemplate.value(bytes: valueBytes), framed: false)
        print(template.text(number: record))
    }
}
