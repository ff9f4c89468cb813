import CRUDPluginTesting
import CRUDTestSupport
import PluginTestSupport
import Testing

/// How often the plugin, and the daemon with it, waits for the server: that is what a server in the network costs.
@Suite struct RoundTripTests {
    private let relay: Relay

    init() throws {
        relay = try Relay(to: PostgreSQLServer.shared())
    }

    /// How many round trips `body` takes, as soon as all statements are prepared and all connections made.
    private func roundTrips(_ body: () throws -> Void) throws -> Int {
        try body()
        let before = relay.roundTrips
        try body()
        return relay.roundTrips - before
    }

    @Test(arguments: [1, 100])
    func aBatchTakesOne(count: Int) throws {
        defer { relay.end() }
        let backend = try PluginBackend.open(relay.connection, schema: "batches \(count)")
        let collection = try backend.open("c", indexes: ["n"], hasSequences: true)
        let ids = (0..<count).map { "\($0)" }
        func write(_ mutations: [PluginMutation], isAtomic: Bool = false) throws {
            let outcomes = try backend.write(mutations, isAtomic: isAtomic)
            #expect(outcomes.count == mutations.count)
        }
        let ofPuts = try roundTrips { try write(ids.map { .put($0, "1", in: collection) }) }
        #expect(ofPuts == 1)
        let ofConditions = try roundTrips {
            try write(
                ids.map { .remove($0, in: collection) }
                    + ids.map { .put($0, "1", revision: "a", if: .absent, in: collection) })
            try write(ids.map { .put($0, "2", revision: "b", if: .revision("a"), in: collection) })
        }
        #expect(ofConditions == 2)
        // The outcomes decide whether to commit.
        let ofAtomic = try roundTrips { try write(ids.map { .put($0, "3", in: collection) }, isAtomic: true) }
        #expect(ofAtomic == 2)
        let reader = try backend.reader()
        let ofReads = try roundTrips {
            let found = try reader.read(ids, in: collection)
            #expect(found.compactMap { $0?.item } == ids.map { _ in "3" })
        }
        #expect(ofReads == 1)
    }

    /// Reads of several requests become one, and the records that patches need are read together.
    @Test(arguments: ["inline", "process"])
    func requestsShareThem(isolation: String) throws {
        defer { relay.end() }
        let options = #"{connection: "\#(relay.connection)", schema: shared by requests \#(isolation)}"#
        let daemon = try Daemon(
            Configuration(
                backends: "main: {plugin: postgresql, isolation: \(isolation), options: \(options)}", cache: "0B"))
        let connection = try daemon.connect()
        let ids = (0..<60).map { "\($0)" }
        func results(_ replies: [Reply]) { #expect(replies.allSatisfy { $0.result != nil }, "\(replies)") }
        results(try connection.pipeline(ids.map { ("record.create", Connection.params("c", $0, item: "{}")) }))

        let ofOne = try roundTrips { results([try connection.readMany("c", ids)]) }
        #expect(ofOne == 1)
        let ofReads = try roundTrips {
            results(try connection.pipeline(ids.map { ("record.read", Connection.params("c", $0)) }))
        }
        #expect(ofReads <= 8, "reads of 60 requests")
        let patches = ids.map { #"{"op":"patch","collection":"c","id":"\#($0)","patch":{"n":1}}"# }
        let ofPatches = try roundTrips {
            let parameters = #"{"operations":[\#(patches.joined(separator: ","))]}"#
            let reply = try connection.call("record.batch", parameters)
            #expect(reply.result?["results"]?.elements?.allSatisfy { $0["result"] != nil } == true, "\(reply)")
        }
        #expect(ofPatches == 2, "one to read, one to write")
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}
