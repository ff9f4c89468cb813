import ArgumentParser
import CRUDJSON
import CRUDModel
import CRUDWire

struct Collections: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists the collections that you may read.",
        discussion: """
            With --sizes every record is counted. The bytes are those of ids and items as they are stored, without \
            what the backend needs beside them; ~ marks an estimate.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Flag(help: "Show how many records there are, and how many bytes.") var sizes = false

    func run() async throws {
        try await withClient { client in
            let list = try await client.call("collection.list", json: Array("{}".utf8))
            let collections = ResultObject(list)?.elements("collections")
            if collections?.isEmpty == true { try await Denial.check(client) }
            guard sizes else { return try show(list, list: "collections", notations: ["indexes": .list]) }
            let names = (collections ?? []).compactMap { ResultObject(Array($0))?.string("name") }
            try await showSizes(of: names, client)
        }
    }

    /// How many collections may fail before the others are not tried.
    private static let maximumFailures = 10

    private func showSizes(of names: [String], _ client: Client) async throws {
        var sizes: [CollectionSize] = []
        var failures: [CRUDError] = []
        for name in names where failures.count < Self.maximumFailures {
            do {
                sizes.append(try await CollectionSize(of: name, client))
            } catch let error as CRUDError {
                failures.append(error)
                StandardError.write("crudctl: collection \(quoted(name.utf8)): \(error.message)\n")
            }
        }
        try show(
            CollectionSize.list(sizes, asTable: printer.format == .table), list: "collections",
            notations: ["bytes": .whole])
        if let failure = failures.first { throw failure }
    }
}
