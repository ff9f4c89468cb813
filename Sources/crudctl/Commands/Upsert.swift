import ArgumentParser
import CRUDJSON

struct Upsert: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Stores a record, whether it is there or not, and prints its revision.")

    @ParentCommand var root: Crudctl
    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var record: RecordArguments
    @Argument(help: .item) var item: String?
    @OptionGroup var precondition: Precondition

    func run() async throws {
        let text = try ItemArgument(item).text()
        try show(
            try await call("record.upsert") { params in
                record.write(to: &params)
                params.key("item")
                params.raw(text)
                precondition.write(to: &params)
            })
    }
}
