import ArgumentParser
import CRUDWire

struct Count: DaemonCommand {
    static let configuration = CommandConfiguration(abstract: "Counts records.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var selection: SelectionArguments

    func run() async throws {
        let members = try selection.members()
        let result = try await call(
            "record.count", on: selection.collection, isEmpty: { $0.integer("count") == 0 }, members)
        guard printer.format == .table, let object = ResultObject(result), let count = object.value("count") else {
            return try show(result)
        }
        try StandardOutput.write(count + [UInt8(ascii: "\n")])
        CorruptRecords.note(object.elements("corrupt") ?? [])
    }
}
