import ArgumentParser

struct Delete: DaemonCommand {
    static let configuration = CommandConfiguration(abstract: "Deletes an existing record.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var record: RecordArguments
    @OptionGroup var precondition: Precondition

    func run() async throws {
        try show(
            try await call("record.delete", on: record.collection) { params in
                record.write(to: &params)
                precondition.write(to: &params)
            })
    }
}
