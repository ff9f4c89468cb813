import ArgumentParser
import CRUDWire

struct Collections: DaemonCommand {
    static let configuration = CommandConfiguration(abstract: "Lists the collections that you may read.")

    @OptionGroup(title: "Global options") var options: GlobalOptions

    func run() async throws {
        try await withClient { client in
            let list = try await client.call("collection.list", json: Array("{}".utf8))
            if ResultObject(list)?.elements("collections")?.isEmpty == true { try await Denial.check(client) }
            try show(list, list: "collections")
        }
    }
}
