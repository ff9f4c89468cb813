import ArgumentParser
import CRUDJSON

struct Patch: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Changes members of a record's item and prints what it is now.",
        discussion: """
            ITEM is a JSON Merge Patch (RFC 7396): a member sets the one of that name, null removes it, and members that \
            it does not name stay as they are.
            """)

    @ParentCommand var root: Crudctl
    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var record: RecordArguments
    @Argument(help: .item) var item: String?
    @OptionGroup var precondition: Precondition
    @Flag(help: "Begin with {} where there is no such record.") var upsert = false

    func run() async throws {
        let text = try ItemArgument(item).text()
        try show(
            try await call("record.patch") { params in
                record.write(to: &params)
                params.key("patch")
                params.raw(text)
                precondition.write(to: &params)
                if upsert { params.member("upsert", true) }
            })
    }
}
