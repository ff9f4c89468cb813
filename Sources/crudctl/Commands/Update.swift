import ArgumentParser

struct Update: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Replaces the item of an existing record and prints its new revision.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var record: RecordArguments
    @Argument(help: .item) var item: String?
    @OptionGroup var precondition: Precondition
    @OptionGroup var expiry: ExpiryArguments

    func run() async throws {
        try await write("record.update", record, item ?? "-") { params in
            precondition.write(to: &params)
            expiry.write(to: &params)
        }
    }
}
