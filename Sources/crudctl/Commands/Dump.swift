import ArgumentParser
import CRUDJSON
import CRUDModel
import CRUDWire

struct Dump: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints collections as NDJSON, which load reads.",
        discussion: """
            Each collection has a header line, a line for each record and a last line with their number; without that \
            line a dump is truncated, and load refuses it. A record that is written meanwhile is dumped as it was \
            before or as it is afterwards.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The names of the collections.", completion: .collections) var collections: [String] = []
    @Flag(help: "Dump every collection that you may read.") var all = false
    @Option(
        name: .customLong("where"),
        help: ArgumentHelp(
            "Only records whose item satisfies this, such as age >= 18 AND name LIKE 'B%'.", valueName: "cql2"))
    var condition: String?

    func validate() throws {
        guard collections.isEmpty == all else {
            throw ValidationError("Name the collections to dump, or give --all for every collection.")
        }
    }

    func run() async throws {
        let filter = try condition.map { Array(try Filter(cql2Text: $0).cql2JSON.utf8) }
        let corrupt = try await withClient { client in
            var corrupt: CRUDError?
            for name in try await names(client) {
                var dump = CollectionDump(client: client, name: name, filter: filter)
                let error = try await dump.run()
                if dump.records == 0, !all { await UnknownCollection.note(name, client) }
                corrupt = corrupt ?? error
            }
            return corrupt
        }
        if let corrupt { throw corrupt }
    }

    private func names(_ client: Client) async throws -> [String] {
        guard all else { return collections }
        let list = ResultObject(try await client.call("collection.list", json: Array("{}".utf8)))
        let names = (list?.elements("collections") ?? []).compactMap { ResultObject(Array($0))?.string("name") }
        if names.isEmpty { try await Denial.check(client) }
        return names
    }
}
