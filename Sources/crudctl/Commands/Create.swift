import ArgumentParser
import CRUDJSON

struct Create: DaemonCommand {
    static let configuration = CommandConfiguration(abstract: "Stores a new record and prints its revision.")

    @ParentCommand var root: Crudctl
    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var record: RecordArguments
    @Argument(help: .item) var item: String?

    func run() async throws {
        let text = try ItemArgument(item).text()
        try show(
            try await call("record.create") { params in
                record.write(to: &params)
                params.key("item")
                params.raw(text)
            })
    }
}
