import ArgumentParser
import CRUDClient
import CRUDJSON
import CRUDWire

struct Read: DaemonCommand {
    static let configuration = CommandConfiguration(abstract: "Prints a record.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var record: RecordArguments
    @Option(help: ArgumentHelp("Print these members of the item only.", valueName: "a,b.c")) var fields: String?
    @Flag(help: "Print the item only, as it is stored.") var raw = false

    func validate() throws {
        guard raw, let fields, fields.allSatisfy({ $0 == "," }) else { return }
        throw ValidationError("--fields names nothing of the item, which --raw prints.")
    }

    func run() async throws {
        let result = try await call("record.read", on: record.collection) { params in
            record.write(to: &params)
            if let fields {
                params.member("fields", strings: PropertyNames(fields).names)
            }
        }
        guard raw else { return try show(result, notations: ["expiresAt": .instant]) }
        guard let item = ResultObject(result)?.value("item") else {
            throw CRUDError(.internalError, "the daemon's reply has no item")
        }
        try StandardOutput.write(item + [UInt8(ascii: "\n")])
    }
}
