import ArgumentParser
import CRUDWire

struct Exists: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Tells whether a record exists, also by the exit status: 0 or 66.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var record: RecordArguments

    func run() async throws {
        let result = try await call(
            "record.exists", on: record.collection, isEmpty: { $0.bool("exists") == false }, record.write(to:))
        try show(result)
        if ResultObject(result)?.bool("exists") != true { throw ExitCode(66) }
    }
}
