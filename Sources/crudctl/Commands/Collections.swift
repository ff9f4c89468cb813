import ArgumentParser

struct Collections: DaemonCommand {
    static let configuration = CommandConfiguration(abstract: "Lists the collections that you may read.")

    @OptionGroup(title: "Global options") var options: GlobalOptions

    func run() async throws {
        try show(try await call("collection.list"), list: "collections")
    }
}
