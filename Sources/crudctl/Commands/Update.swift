import ArgumentParser
import CRUDJSON

struct Update: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Replaces the item of a record that is there and prints its new revision.")

    @ParentCommand var root: Crudctl
    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var record: RecordArguments
    @Argument(help: .item) var item: String?
    @OptionGroup var precondition: Precondition

    func run() async throws {
        let text = try ItemArgument(item).text()
        try show(
            try await call("record.update") { params in
                record.write(to: &params)
                params.key("item")
                params.raw(text)
                precondition.write(to: &params)
            })
    }
}
