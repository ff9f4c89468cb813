import ArgumentParser
import CRUDJSON
import CRUDWire

struct Describe: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Describes a collection: its place, its capabilities and the number of its records.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The collection's name.", completion: .collections) var collection: String

    func run() async throws {
        try show(
            try await call("collection.describe", on: collection, isEmpty: { $0.integer("count") == 0 }) {
                $0.member("collection", collection)
            }, notations: ["retention": .age, "bytes": .bytes], expandsObjects: true)
    }
}
