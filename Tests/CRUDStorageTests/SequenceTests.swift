import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import Testing

@testable import CRUDStorage

/// The numbers that the host gives to mutations.
@Suite struct SequenceTests {
    private static let capabilities: Plugin.Capabilities = [
        .concurrentReads, .fastReads, .sequences, .transactions, .indexes,
    ]

    /// Keeps what a scan finds, as `ID=NUMBER`.
    private final class Sequences: RecordVisitor {
        private(set) var texts: [String] = []

        func visit(_ record: FoundRecord) -> Bool {
            texts.append("\(String(decoding: record.id, as: UTF8.self))=\(record.sequence)")
            return true
        }
    }

    private func sequences(_ order: RecordScan.Order, in test: TestBackend, _ place: BackendCollection) throws
        -> [String]
    {
        let reader = try #require(test.backend.reader(forLoop: 0))
        defer { reader.releaseSnapshot() }
        let visitor = Sequences()
        try reader.scan(RecordScan(order), of: place, into: visitor)
        return visitor.texts
    }

    @Test func numbersRiseInCommitOrderOverAllCollections() throws {
        let test = try TestBackend.opened(capabilities: Self.capabilities, options: #"{"last_sequence":41}"#)
        let (clients, orders) = (collection("clients"), collection("orders"))
        try test.write(.put("c"), .put("a"), in: clients)
        try test.write(.put("x"), in: orders)
        try test.write(.put("b"), .put("a"), in: clients)
        #expect(try sequences(.sequence, in: test, clients) == ["c=42", "b=45", "a=46"])
        #expect(try sequences(.sequence, in: test, orders) == ["x=44"])
        #expect(test.plugin[.violations] == 0)
    }

    /// What fails uses numbers up, so that none is ever given twice; checks and keys need none.
    @Test func numbersAreNeverReused() throws {
        let test = try TestBackend.opened(capabilities: Self.capabilities)
        let clients = collection()
        try test.write(.put("a"), .remove("a"), .put("a", if: .present), .put("b"), in: clients)
        #expect(try sequences(.sequence, in: test, clients) == ["b=4"])
        try test.write(.put("c"), .put("call:\(CRUDD_NO_SPACE)"), in: clients)
        try test.write(.put("d"), in: clients)
        #expect(try sequences(.sequence, in: test, clients) == ["b=4", "d=7"])

        try test.write(.setKeys("b", []), in: clients)
        let inbox = try Inbox<WorkItem>()
        let batch = MutationBatch(isAtomic: true) { inbox.put($0) }
        batch.append(.check("b", if: .present), in: clients)
        batch.append(.put("e"), in: clients)
        test.backend.submit(.write(batch))
        _ = try inbox.take()
        #expect(try sequences(.sequence, in: test, clients) == ["b=4", "d=7", "e=8"])
    }

    /// The plugin's upper bound counts, whatever this daemon has given out before.
    @Test func numbersContinueFromTheLastOneOfThePlugin() throws {
        for last in [1000, 5] {
            let test = try TestBackend.opened(
                capabilities: Self.capabilities, options: #"{"last_sequence":\#(last)}"#)
            let clients = collection()
            try test.write(.put("a"), in: clients)
            #expect(try sequences(.id, in: test, clients) == ["a=\(last + 1)"])
        }
    }

    /// One that is absurdly large would run out, or overflow.
    @Test func absurdLastNumberIsAFailureToOpen() throws {
        let test = try TestBackend(
            capabilities: Self.capabilities, options: #"{"last_sequence":\#(Int64.max)}"#)
        let failure = try #require(try test.start())
        #expect(failure.status == CRUDD_INTERNAL)
        #expect(failure.message.contains("\(Int64.max)"))
        test.backend.stop()
        #expect(test.plugin[.opens] == test.plugin[.closes])
    }
}
