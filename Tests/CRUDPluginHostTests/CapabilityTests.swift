import CRUDModel
import CRUDPluginABI
import Testing

@testable import CRUDPluginHost

/// What a plugin does not declare, or takes back as it is opened, it is not asked for.
@Suite struct CapabilityTests {
    /// What a plugin declares, and what it takes back.
    static let declarations: [(Plugin.Capabilities, Plugin.Capabilities)] = [
        ([.transactions, .queries], []), ([], []), ([.transactions, .queries], [.transactions, .queries]),
    ]

    @Test(arguments: declarations)
    func decideWhetherABatchMayBeAtomic(declared: Plugin.Capabilities, lacking: Plugin.Capabilities) throws {
        let test = try TestBackend.opened(capabilities: declared, options: #"{"lacks":\#(lacking.rawValue)}"#)
        let clients = collection()
        try test.write(.put("a", "1"), in: clients)
        let inbox = try Inbox<WorkItem>()
        let batch = MutationBatch(isAtomic: true) { inbox.put($0) }
        batch.append(.put("a", "2"), in: clients)
        batch.append(.put("b", "2"), in: clients)
        test.backend.submit(batch)
        _ = try inbox.take()
        let has = test.backend.capabilities.contains(.transactions)
        #expect(has == (lacking.isEmpty && !declared.isEmpty))
        #expect(batch.failure?.code == (has ? nil : .unsupported))
        #expect(test.plugin[.writes] == (has ? 2 : 1))
        #expect(try test.read(["a", "b"], in: clients) == .records(has ? ["2@r", "2@r"] : ["1@r", nil]))
    }

    @Test(arguments: declarations)
    func decideWhetherAPluginIsAskedToSearch(declared: Plugin.Capabilities, lacking: Plugin.Capabilities) throws {
        let test = try TestBackend.opened(
            capabilities: declared.union([.readsConcurrently, .readsFast]),
            options: #"{"lacks":\#(lacking.rawValue)}"#)
        let clients = collection()
        try test.write(.put("a"), in: clients)
        let reader = try #require(test.backend.reader(forLoop: 0))
        let filter = Array("false".utf8)
        let has = test.backend.capabilities.contains(.queries)
        #expect(try reader.count(clients, filter: filter, prefix: [], interrupt: { false }) == (has ? 1 : nil))
        #expect(try reader.count(clients, filter: [], prefix: [], interrupt: { false }) == 1)
        var query = PluginQuery()
        query.filter = filter
        query.limit = 1
        var plan = PluginPlan()
        let answer = try reader.query(query, in: clients, into: Nobody(), interrupt: { false }, plan: &plan)
        #expect(answer == (has ? .complete : .refused))
        reader.endSnapshot()
        #expect(test.plugin[.queries] == (has ? 2 : 0))
    }

    private final class Nobody: FoundRecordSink {
        func receive(
            id: UnsafeRawBufferPointer, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer
        ) -> Bool { false }
    }
}
