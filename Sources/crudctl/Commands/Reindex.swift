import ArgumentParser
import CRUDJSON

struct Reindex: DaemonCommand {
    static let configuration = CommandConfiguration(abstract: "Rebuilds a collection's indexes in the background.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The collection's name.", completion: .collections) var collection: String

    func run() async throws {
        try show(try await call("collection.reindex") { $0.member("collection", collection) })
    }
}
