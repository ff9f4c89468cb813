import CRUDTestSupport
import Glibc
import Testing

/// Sixteen clients that ask for a record in every way while it expires: what was asked for after its instant does not
/// find it, whatever was read or cached just before.
@Suite(.daemon(StorageMatrix.configuration, loops: [2]), .serialized) struct ExpiryInstantTests {
    private static let cells = StorageMatrix.cells.filter { $0.format == "json" }

    /// How to ask for the record `a`, and whether a reply has found it.
    private struct Question {
        let method: String
        let params: String
        let hasFound: (Reply) -> Bool
    }

    private static func questions(_ collection: String, _ revision: String) -> [Question] {
        let name = JSON.quote(collection)
        let record = #""collection":\#(name),"id":"a""#
        let filter = #""filter":{"op":"=","args":[{"property":"n"},1]}"#
        func records(_ reply: Reply) -> Bool { reply.result?["records"]?.elements?.isEmpty == false }
        func count(_ reply: Reply) -> Bool { reply.result?["count"]?.integer == 1 }
        // A write that fails either way tells as much.
        func mismatch(_ reply: Reply) -> Bool { reply.error?.name == "revision_mismatch" }
        return [
            Question(method: "record.read", params: "{\(record)}") { $0.result != nil },
            Question(method: "record.exists", params: "{\(record)}") { $0.result?["exists"]?.boolean == true },
            Question(method: "record.readMany", params: #"{"collection":\#(name),"ids":["b","a"]}"#, hasFound: records),
            Question(method: "record.query", params: #"{"collection":\#(name)}"#, hasFound: records),
            Question(method: "record.query", params: #"{"collection":\#(name),\#(filter)}"#, hasFound: records),
            Question(method: "record.count", params: #"{"collection":\#(name)}"#, hasFound: count),
            Question(method: "record.count", params: #"{"collection":\#(name),\#(filter)}"#, hasFound: count),
            Question(method: "record.update", params: #"{\#(record),"item":2,"ifRevision":"x"}"#, hasFound: mismatch),
            Question(method: "record.delete", params: #"{\#(record),"ifRevision":"x"}"#, hasFound: mismatch),
            Question(
                method: "record.batch",
                params: #"{"operations":[{"op":"check",\#(record),"ifRevision":\#(JSON.quote(revision))}]}"#
            ) { $0.result?["results"]?.elements?.first?["result"] != nil },
        ]
    }

    @Test(arguments: cells)
    func nobodySeesItAfterwards(cell: StorageMatrix.Cell) throws {
        let daemon = try Daemon.shared(loops: 2)
        let connections = try (0..<16).map { _ in try daemon.connect() }
        var found: [Int] = []
        // A busy machine takes longer to have asked everything before.
        for milliseconds in [400, 4000, 40_000] {
            found = try ask(connections, in: cell.collection + " instant", untilExpiryIn: milliseconds)
            if found.allSatisfy({ $0 > 0 }) { return }
        }
        Issue.record("\(found)")
    }

    /// Creates a record, and asks until it has expired.
    ///
    /// - Returns: how often each question has found it.
    private func ask(
        _ connections: [Connection], in collection: String, untilExpiryIn milliseconds: Int
    ) throws -> [Int] {
        let expiry = ExpiryTests.now() + milliseconds
        let created = try connections[0].call(
            "record.create",
            #"{"collection":\#(JSON.quote(collection)),"id":"a","item":{"n":1},"expiresAt":\#(expiry)}"#)
        let revision = try #require(created.result?["revision"]?.string, "\(created)")
        let questions = Self.questions(collection, revision)
        var found = [Int](repeating: 0, count: questions.count)
        var asked = [Int](repeating: 0, count: connections.count)
        var turns = Array(connections.indices)
        func ask(_ index: Int) throws {
            let question = questions[turns[index] % questions.count]
            asked[index] = ExpiryTests.now()
            try connections[index].sendFrame(Connection.request(question.method, question.params, id: "1"))
        }
        for index in connections.indices { try ask(index) }
        let deadline = Deadline()
        while let first = asked.min(), first < expiry + 30 {
            try #require(!deadline.hasPassed)
            let events = try Descriptor.wait(
                for: try connections.map { (try $0.pollDescriptor, POLLIN) }, until: deadline)
            for index in connections.indices where events[index] != 0 {
                try connections[index].takeIn()
                guard let frame = try connections[index].bufferedFrame() else { continue }
                let number = turns[index] % questions.count
                if questions[number].hasFound(try Reply(JSON(parsing: frame))) {
                    found[number] += 1
                    #expect(asked[index] < expiry, "\(questions[number].method), \(asked[index] - expiry) ms")
                }
                turns[index] += 1
                try ask(index)
            }
        }
        // The next record is another one.
        for index in connections.indices { _ = try connections[index].receive() }
        return found
    }
}
