import CRUDTestSupport
import Testing

/// What a crash leaves, and what is there afterwards.
@Suite struct CrashTests {
    private let suite: SuiteDaemon

    init() throws {
        suite = try SuiteDaemon()
    }

    /// A list that was not written to its end: of so many thousandths of its bytes.
    @Test(arguments: [0, 1, 500, 990, 999])
    func restoresATornList(thousandths: Int) throws {
        let connection = try suite.start()
        for number in 0..<20 { #expect(try connection.create("c", "\(number)", "\(number)").result != nil) }
        try suite.stop()
        let whole = try Files.read(suite.path)
        try Files.write(Array(whole.prefix(whole.count * thousandths / 1000)), to: suite.path)

        let restored = try suite.start()
        #expect(suite.log.contains("torn"))
        for number in 0..<20 { #expect(try restored.item("c", "\(number)") == "\(number)") }
        #expect(try Files.read(suite.path) == whole)
        #expect(try restored.create("c", "next", "1").result != nil)
        #expect(try suite.list()["database_c_item_19"] as? String == "19")
    }

    /// A crash while the copy was being made: the list itself is whole.
    @Test func needsNoCopyOfAWholeList() throws {
        #expect(try suite.start().create("c", "a", "1").result != nil)
        try suite.stop()
        try Files.write("<?xml", to: "\(suite.configuration)/.com.example.test.plist.crudd-copy")
        let connection = try suite.start()
        #expect(try connection.item("c", "a") == "1")
        #expect(try connection.create("c", "b", "2").result != nil)
    }

    @Test func doesNotRestoreFromATornCopy() throws {
        #expect(try suite.start().create("c", "a", "1").result != nil)
        try suite.stop()
        for name in ["com.example.test.plist", ".com.example.test.plist.crudd-copy"] {
            try Files.write("<?xml", to: "\(suite.configuration)/\(name)")
        }
        #expect(try suite.start().create("c", "b", "2").error?.name == "unavailable")
        #expect(try Files.read(suite.path) == Array("<?xml".utf8))
    }

    /// The list is large, so that most kills come while it is being written.
    @Test func keepsAcknowledgedWritesThroughKills() throws {
        let padding = String(repeating: "x", count: 20_000)
        var acknowledged = 0
        var connection = try suite.start()
        for number in 0..<100 { _ = try connection.create("large", "\(number)", "\"\(padding)\"") }
        for round in 0..<10 {
            for _ in 0..<(1 + round * 2) {
                acknowledged += 1
                #expect(try connection.upsert("c", "\(acknowledged % 7)", "\(acknowledged)").result != nil)
            }
            // One that is in flight when the kill comes.
            let params = Connection.params("c", "\((acknowledged + 1) % 7)", item: "\(acknowledged + 1)")
            try connection.sendFrame(Connection.request("record.upsert", params, id: "0"))
            try suite.kill()
            connection = try suite.start()
            for number in max(1, acknowledged - 5)...acknowledged {
                let item = try connection.item("c", "\(number % 7)").flatMap { Int($0) } ?? 0
                #expect(item >= number, "round \(round)")
            }
            if try connection.item("c", "\((acknowledged + 1) % 7)") == "\(acknowledged + 1)" { acknowledged += 1 }
            #expect(try connection.item("large", "99")?.utf8.count == padding.utf8.count + 2)
        }
    }
}
