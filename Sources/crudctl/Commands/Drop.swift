import ArgumentParser
import CRUDJSON
import CRUDWire

struct Drop: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Deletes all records of a collection and what its backend keeps for it.",
        discussion: """
            With --moved the collection stays, and what its moves have left in its former places is deleted. Asks for \
            confirmation on a terminal; elsewhere --yes is required.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The collection's name.", completion: .collections) var collection: String
    @Flag(help: "Delete only what moves have left in the collection's former places.") var moved = false
    @OptionGroup var confirmation: Confirmation

    func validate() throws { try confirmation.check() }

    func run() async throws {
        let isConfirmed = try await confirmation.isGiven {
            if moved { return "Delete what moves of \(collection) have left in its former places?" }
            let description = try await call("collection.describe") { $0.member("collection", collection) }
            let count = ResultObject(description)?.integer("count")
            return "Drop \(collection) with \(Confirmation.records(count))?"
        }
        guard isConfirmed else { return }
        try show(
            try await call("collection.drop") { params in
                params.member("collection", collection)
                if moved { params.member("moved", true) }
            })
    }
}
