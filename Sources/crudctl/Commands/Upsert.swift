import ArgumentParser

struct Upsert: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Stores a record, whether it exists or not, and prints its revision.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var record: RecordArguments
    @Argument(help: .item) var item: String?
    @OptionGroup var precondition: Precondition
    @OptionGroup var expiry: ExpiryArguments

    func run() async throws {
        try await write("record.upsert", record, item ?? "-") { params in
            precondition.write(to: &params)
            expiry.write(to: &params)
        }
    }
}
