import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import CRUDThreads
import PluginTestSupport
import Synchronization
import Testing

/// Who may have a schema open: one daemon for itself, or several that share it.
@Suite struct SharedSchemaTests {
    private let server: PostgreSQLServer
    private let plugin: ExportedPlugin

    init() throws {
        server = try PostgreSQLServer.shared()
        plugin = try ExportedPlugin("postgresql")
    }

    private func open(_ schema: String, isShared: Bool) throws -> PluginBackend {
        try PluginBackend.open(server.connection, schema: schema, #", "shared": \#(isShared)"#)
    }

    /// The same, unless that is not possible at once.
    private func openAtOnce(_ schema: String, isShared: Bool) throws -> PluginBackend {
        try PluginBackend(
            plugin,
            options: #"{"connection": "\#(server.connection)", "schema": "\#(schema)", "shared": \#(isShared)}"#)
    }

    /// Each kind excludes the other one until it is closed.
    @Test(arguments: [false, true])
    func sharingAndOwningExcludeEachOther(sharesFirst: Bool) throws {
        let schema = "exclusive_\(sharesFirst)"
        var first: PluginBackend? = try open(schema, isShared: sharesFirst)
        func write(_ item: String) throws -> [PluginOutcome]? {
            try first.map { try $0.write([.put("a", item, in: $0.open("c"))]) }
        }
        #expect(try write("1") == [.created])
        let words = sharesFirst ? "shares it" : "for itself"
        let deadline = Deadline()
        var error: CallError?
        // Again where a busy server has not replied in time.
        repeat {
            error = #expect(throws: CallError.self) { try openAtOnce(schema, isShared: !sharesFirst) }
        } while error?.message.contains(words) == false && !deadline.hasPassed
        #expect(error?.status == CRUDD_UNAVAILABLE)
        #expect(error?.message.contains(words) == true)
        #expect(try write("2") == [.replaced], "the first one is not disturbed")
        first = nil
        let second = try open(schema, isShared: !sharesFirst)
        #expect(try second.reader().read("a", in: second.open("c"))?.item == "2")
    }

    /// One that has not renewed its row in time is gone: what it still writes is refused.
    @Test(arguments: [false, true])
    func whoIsLateWritesNothing(shares: Bool) throws {
        let schema = "late_\(shares)"
        let late = try open(schema, isShared: shares)
        let collection = try late.open("c")
        #expect(try late.write([.put("a", "1", in: collection)]) == [.created])
        let deadline = Deadline()
        var next: PluginBackend?
        // The row is renewed every two seconds, perhaps between these two statements.
        while next == nil {
            try #require(!deadline.hasPassed)
            #expect(try server.query("UPDATE \(schema).crudd_lease SET expires_at = now() - interval '1 s'") != nil)
            next = try? openAtOnce(schema, isShared: !shares)
        }
        let error = #expect(throws: CallError.self) { try late.write([.put("a", "2", in: collection)]) }
        #expect(error?.status == CRUDD_UNAVAILABLE)
        #expect(try #require(next).reader().read("a", in: #require(next).open("c"))?.item == "1")
    }

    /// Of many that come at once, as both kinds, either one has the schema or others share it.
    @Test func thoseThatComeAtOnceAgree() throws {
        for round in 0..<10 {
            let schema = "race_\(round)"
            // It is made beforehand: that is not what is raced for.
            _ = try open(schema, isShared: true)
            let opened = Mutex<[(backend: PluginBackend, isShared: Bool)]>([])
            let threads = try (0..<6).map { number in
                try Thread(named: "daemon \(number)") {
                    let isShared = number.isMultiple(of: 2)
                    guard let backend = try? openAtOnce(schema, isShared: isShared) else { return }
                    opened.withLock { $0.append((backend, isShared)) }
                }
            }
            for thread in threads { thread.join() }
            let kinds = opened.withLock { $0.map(\.isShared) }
            #expect(kinds.allSatisfy(\.self) || kinds == [false], "\(kinds)")
        }
    }

    /// Daemons that share a schema agree on a collection's format.
    @Test func sharedCollectionsHaveOneFormat() throws {
        let (first, second) = (try open("formats", isShared: true), try open("formats", isShared: true))
        #expect(try first.write([.put("a", "1", in: first.open("c", format: "json"))]) == [.created])
        let error = #expect(throws: CallError.self) { try second.open("c", format: "xml") }
        #expect(error?.status == CRUDD_UNSUPPORTED)
        #expect(error?.message.contains("for format json") == true)
        let third = try open("formats", isShared: true)
        #expect(try third.reader().count(third.open("c", format: "json")) == 1)
    }

    /// A daemon with other indexes is refused while one is there that keeps these.
    @Test(arguments: [[], ["s"], ["n", "s"]])
    func sharedCollectionsHaveOneSetOfIndexes(paths: [String]) throws {
        let schema = "indexes_\(paths.joined())"
        var first: PluginBackend? = try open(schema, isShared: true)
        let second = try open(schema, isShared: true)
        func write() throws -> [PluginOutcome]? {
            try first.map { try $0.write([.put("a", "1", keys: ["k"], in: $0.open("c", indexes: ["n"]))]) }
        }
        #expect(try write() == [.created])
        let error = #expect(throws: CallError.self) { _ = try second.open("c", indexes: paths) }
        #expect(error?.status == CRUDD_UNSUPPORTED && error?.message.contains(#"indexes on "n""#) == true)
        #expect(try write() == [.replaced], "the first one is not disturbed")
        #expect(try second.reader().count(second.open("c", indexes: ["n"])) == 1)
        first = nil
        #expect(try second.reader().count(second.open("c", indexes: paths)) == 1)
    }

    /// One that another daemon has open, and may be about to fill, is not given an index either; and of daemons that
    /// make it at once one decides.
    @Test func sharedCollectionsHaveTheIndexesThatTheyWereMadeWith() throws {
        let (first, second) = (try open("empty", isShared: true), try open("empty", isShared: true))
        _ = (try first.open("plain"), try first.open("indexed", indexes: ["n"]))
        #expect(try Self.refuses(second, "plain", ["n"]))
        #expect(try Self.refuses(second, "indexed", []))
        for round in 0..<20 {
            let refusals = Mutex<[Bool?]>([])
            let daemons: [(PluginBackend, [String])] = [(first, ["n"]), (second, [])]
            let threads = try daemons.map { backend, paths in
                try Thread(named: "opening") {
                    let isRefused = try? Self.refuses(backend, "c\(round)", paths)
                    refusals.withLock { $0.append(isRefused) }
                }
            }
            for thread in threads { thread.join() }
            let results = refusals.withLock(\.self)
            #expect(results.contains(true) && results.contains(false), "\(results)")
        }
    }

    /// Whether a daemon refuses to open a collection with these indexes.
    private static func refuses(_ backend: PluginBackend, _ name: String, _ paths: [String]) throws -> Bool {
        do {
            _ = try PluginBackend.whenAvailable { try backend.open(name, indexes: paths) }
            return false
        } catch let error as CallError where error.status == CRUDD_UNSUPPORTED {
            #expect(error.message.contains("which daemons that share a schema have to agree on"))
            return true
        }
    }

    // MARK: Upkeep

    /// One daemon removes what has expired, and another one when that does not renew its row any more: then the first
    /// one removes nothing, even where it is still sure of it.
    @Test func upkeepIsDoneByOne() throws {
        let backends = try (0..<2).map { _ in try open("upkeep", isShared: true) }
        let collections = try backends.map { try $0.open("c") }
        for (number, id) in ["a", "b", "c", "d"].enumerated() {
            let put = PluginMutation.put(id, "1", expiresAt: Int64(number + 1), in: collections[0])
            #expect(try backends[0].write([put]) == [.created])
        }
        func remove(_ number: Int) throws -> [String] {
            try backends[number].removeExpired(from: collections[number], limit: 1).removed.map(\.id)
        }
        func row(_ assignments: String) throws {
            #expect(try server.query("UPDATE upkeep.crudd_lease SET \(assignments) WHERE number = 0") != nil)
        }
        let isHeld = "expires_at = now() + interval '1 hour'"
        #expect(try remove(0) == ["a"])
        try row(isHeld)
        let next = try backends[1].removeExpired(from: collections[1], limit: 1)
        #expect(next.removed.isEmpty && next.nextExpiry > 4, "it asks again")
        // Another one has taken it while this one was frozen.
        try row("holder = $$other$$, fence = fence + 1, \(isHeld)")
        for number in 0..<2 { #expect(try remove(number) == []) }
        try row("expires_at = now()")
        #expect(try remove(1) == ["b"])
        try row(isHeld)
        #expect(try remove(0) == [])
        // It is not renewed any more.
        try row("expires_at = now() + interval '3 seconds'")
        let deadline = Deadline()
        var removed: [String] = []
        while removed.isEmpty {
            try #require(!deadline.hasPassed)
            removed = try remove(0)
        }
        #expect(removed == ["c"])
    }
}
