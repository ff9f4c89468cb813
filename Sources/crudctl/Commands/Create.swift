import ArgumentParser

struct Create: DaemonCommand {
    static let configuration = CommandConfiguration(abstract: "Stores a new record and prints its revision.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var record: RecordArguments
    @Argument(help: .item) var item: String?
    @OptionGroup var expiry: ExpiryArguments

    func run() async throws {
        try await write("record.create", record, item ?? "-") { expiry.write(to: &$0) }
    }
}
