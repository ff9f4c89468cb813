import ArgumentParser
import CRUDJSON
import CRUDWire

struct Drop: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Deletes all records of a collection and what its backend keeps for it.",
        discussion: "Asks for confirmation on a terminal; elsewhere --yes is required.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The collection's name.", completion: .collections) var collection: String
    @OptionGroup var confirmation: Confirmation

    func run() async throws {
        let isConfirmed = try await confirmation.isGiven {
            let description = try await call("collection.describe") { $0.member("collection", collection) }
            let count = ResultObject(description)?.integer("count")
            return "Drop \(collection) with \(Confirmation.records(count))?"
        }
        guard isConfirmed else { return }
        try show(try await call("collection.drop") { $0.member("collection", collection) })
    }
}
