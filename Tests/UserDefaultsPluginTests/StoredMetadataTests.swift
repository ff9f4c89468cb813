import CRUDTestSupport
import Testing

/// What the suite keeps beside an item.
@Suite struct StoredMetadataTests {
    /// How the value for the item `1` begins: with its SHA-256.
    private static let digest = "6b86b273ff34fce19d6b804eff5a3f57"

    private let suite: SuiteDaemon

    init() throws {
        suite = try SuiteDaemon()
    }

    /// The value beside the item of a record, without the digest.
    private func metadata(_ id: String) throws -> [Substring] {
        let value = try #require(try suite.list()["database_c_revision_\(id)"] as? String)
        return Array(value.split(separator: " ").dropFirst())
    }

    private func sequence(_ id: String) throws -> UInt64 {
        let metadata = try metadata(id)
        try #require(metadata.count == 2)
        return try #require(UInt64(metadata[1]))
    }

    private func edit(_ id: String, _ metadata: String) throws {
        try suite.edit {
            $0["database_c_formats"] = "json"
            $0["database_c_item_\(id)"] = "1"
            $0["database_c_revision_\(id)"] = metadata
        }
    }

    // MARK: Form

    @Test func keepsRevisionAndSequence() throws {
        let connection = try suite.start()
        let revision = try connection.create("c", "a", "1").result?["revision"]?.string
        let sequence = try sequence("a")
        #expect(try metadata("a").first.map(String.init) == revision)
        #expect(try connection.update("c", "a", "2").result != nil)
        #expect(try self.sequence("a") > sequence)
    }

    /// As earlier versions have left it.
    @Test func readsValuesWithARevisionAlone() throws {
        try edit("a", "\(Self.digest) r1")
        let connection = try suite.start()
        #expect(try connection.read("c", "a").result?["revision"]?.string == "r1")
        #expect(try connection.update("c", "a", "2", ifRevision: "r1").result != nil)
        #expect(try sequence("a") > 0)
    }

    @Test(arguments: ["", " ", "r1 7", "\(digest)", "\(digest) ", "\(digest)  7 0", "0\(digest) r1 7"])
    func derivesARevisionFromOtherValues(value: String) throws {
        try edit("a", value)
        #expect(try suite.start().read("c", "a").result?["revision"]?.string == Self.digest)
    }

    // MARK: Expiry

    @Test func hidesWhatHasExpired() throws {
        try edit("past", "\(Self.digest) r1 7 1000")
        try edit("future", "\(Self.digest) r1 8 4102444800000")
        let connection = try suite.start()
        #expect(try connection.item("c", "past") == nil)
        #expect(try connection.item("c", "future") == "1")
        #expect(try connection.call("record.count", #"{"collection": "c"}"#).result?["count"]?.integer == 1)
        let page = try connection.call("record.query", #"{"collection": "c", "limit": 1}"#).result
        #expect(page?["records"]?.elements?.map { $0["id"]?.string } == ["future"])
        #expect(try connection.update("c", "past", "2").error?.name == "record_not_found")
        #expect(try connection.create("c", "past", "2").result != nil)
        #expect(try connection.item("c", "past") == "2")
        #expect(try metadata("past").count == 2)
    }

    // MARK: Sequence numbers

    @Test(arguments: [false, true])
    func usesNoSequenceNumberTwice(isKilled: Bool) throws {
        var highest: UInt64 = 0
        for _ in 0..<3 {
            let connection = try suite.start()
            #expect(try connection.create("c", "a", "1").result != nil)
            let sequence = try sequence("a")
            #expect(sequence > highest)
            highest = sequence
            // The removal has a number of its own, of which nothing but the ceiling remains.
            #expect(try connection.delete("c", "a").result != nil)
            let ceiling = try #require(try suite.list()["database__sequence"] as? String)
            #expect(try #require(UInt64(ceiling)) > highest)
            if isKilled { try suite.kill() } else { try suite.stop() }
        }
    }

    /// Somebody may have removed the key of the ceiling.
    @Test func numbersAboveTheRecords() throws {
        try edit("a", "\(Self.digest) r1 5000000")
        let connection = try suite.start()
        #expect(try connection.create("c", "b", "1").result != nil)
        #expect(try sequence("b") > 5_000_000)
    }
}
