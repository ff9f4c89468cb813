import CRUDTestSupport
import Glibc
import Testing

/// `collection.changes` on every adapter that remembers changes.
@Suite struct ChangesTests {
    static let backends = """
        sqlite: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
        sqlitechild: {plugin: sqlite, isolation: process, options: {path: $DIRECTORY/child.sqlite}}
        memory: {plugin: memory}
        memorychild: {plugin: memory, isolation: process}
        postgresql: {plugin: postgresql, options: \(PostgreSQLServer.options("main"))}
        postgresqlchild: {plugin: postgresql, isolation: process, options: \(PostgreSQLServer.options("child"))}
        files: {plugin: filesystem, options: {directory: $DIRECTORY/files}}
        """
    static let feeds = durableFeeds + ["memory", "memorychild"]
    private static let durableFeeds = ["sqlite", "sqlitechild", "postgresql", "postgresqlchild"]

    static func configuration(changes: String = "true") -> Configuration {
        Configuration(
            backends: backends,
            collections: feeds.map { "\"\($0)*\": {backend: \($0), changes: \(changes)}" }.joined(separator: "\n")
                + "\nfiles: {backend: files}\nplist: {backend: sqlite, format: plist, changes: \(changes)}"
                + "\noff: {backend: sqlite}")
    }

    // MARK: Pages

    @Test(arguments: feeds)
    func aPageHasWhatHasChanged(collection: String) throws {
        let daemon = try Daemon(Self.configuration())
        let connection = try daemon.connect()
        let empty = try connection.changes(collection)
        #expect(empty.changes.isEmpty && !empty.more)
        for id in ["a", "b", "c"] { #expect(try connection.create(collection, id, #"{"n":1}"#).result != nil) }
        let first = try connection.changes(collection, after: empty.cursor)
        #expect(first.ids == ["a", "b", "c"] && !first.more)
        #expect(first.changes[0].text.hasPrefix(#"{"id":"a","item":{"n":1},"revision":"#))
        #expect(try connection.update(collection, "a", #"{"n":2}"#).result != nil)
        #expect(try connection.delete(collection, "b").result != nil)
        #expect(try connection.delete(collection, "c").result != nil)
        #expect(try connection.create(collection, "c", "3").result != nil)
        let second = try connection.changes(collection, after: first.cursor)
        #expect(second.changes.map { $0["id"]?.string } == ["a", "b", "c"])
        #expect(second.changes[0]["item"]?.text == #"{"n":2}"#)
        #expect(second.changes[1].text == #"{"id":"b","deleted":true}"#)
        #expect(second.changes[2]["item"]?.text == "3")
        let none = try connection.changes(collection, after: second.cursor)
        #expect(none.changes.isEmpty && !none.more)
        // From the start, what is there and nothing else.
        #expect(try connection.changes(collection, after: "start").ids == ["a", "c"])
        #expect(try connection.changes(collection, after: "now").changes.isEmpty)
        // Page by page.
        var cursor = "start"
        var ids: [String] = []
        for _ in 0..<3 {
            let page = try connection.changes(collection, after: cursor, #""limit":1"#)
            ids += page.ids
            cursor = page.cursor
        }
        #expect(ids == ["a", "c"])
    }

    @Test func whatIsShown() throws {
        let daemon = try Daemon(Self.configuration())
        let connection = try daemon.connect()
        for collection in ["sqlite", "plist"] {
            #expect(try connection.create(collection, "a1", #"{"n":1,"m":{"o":2}}"#).result != nil)
            #expect(try connection.create(collection, "a2", #"{"n":2}"#).result != nil)
            #expect(try connection.create(collection, "b", #"{"n":1}"#).result != nil)
            let filter = #""filter":{"op":"=","args":[{"property":"n"},1]}"#
            let filtered = try connection.changes(collection, filter)
            #expect(filtered.changes.map { $0["matches"]?.boolean } == [nil, false, nil])
            #expect(filtered.changes.map { $0["item"] == nil } == [false, true, false])
            #expect(filtered.changes.allSatisfy { $0["revision"]?.string != nil })
            let without = try connection.changes(collection, #""items":false"#)
            #expect(without.changes.allSatisfy { $0["item"] == nil && $0["matches"] == nil })
            #expect(try connection.changes(collection, #""prefix":"a""#).ids == ["a1", "a2"])
            let fields = try connection.changes(collection, #""fields":["m.o"]"#)
            #expect(fields.changes.map { $0["item"]?.text } == [#"{"m":{"o":2}}"#, "{}", "{}"])
            let bare = try connection.changes(collection, #""fields":[]"#)
            #expect(bare.changes.map { $0["item"]?.text } == [nil, nil, nil])
            #expect(bare.changes.allSatisfy { $0["revision"]?.string != nil })
        }
    }

    @Test func whatIsRefused() throws {
        let daemon = try Daemon(Self.configuration())
        let connection = try daemon.connect()
        func error(_ collection: String, _ more: String) throws -> String? {
            let reply = try connection.call(
                "collection.changes", #"{"collection":"\#(collection)"\#(more.isEmpty ? "" : ",")\#(more)}"#)
            return reply.error.map { $0.name + ($0.details?["member"]?.string.map { " \($0)" } ?? "") }
        }
        #expect(try error("files", "") == "unsupported")
        #expect(try error("off", "") == "unsupported")
        #expect(try error("sqlite", #""after":"x""#) == "invalid_query")
        #expect(try error("sqlite", #""after":1"#) == "invalid_params after")
        #expect(try error("sqlite", #""limit":0"#) == "invalid_params limit")
        #expect(try error("sqlite", #""limit":10001"#) == "limit_exceeded")
        #expect(try error("sqlite", #""wait":301"#) == "invalid_params wait")
        #expect(try error("sqlite", #""wait":-1"#) == "invalid_params wait")
        #expect(try error("sqlite", #""items":1"#) == "invalid_params items")
        #expect(try error("sqlite", #""filter":{"op":"x","args":[]}"#) == "invalid_query")
        #expect(try connection.create("sqlite", "a", "1").result != nil)
        #expect(try connection.create("memory", "a", "1").result != nil)
        // A cursor of a query, and of another collection.
        let query = try connection.call("record.query", #"{"collection":"sqlite","limit":1}"#)
        if let cursor = query.result?["cursor"]?.string {
            #expect(try error("sqlite", #""after":"\#(cursor)""#) == "invalid_query")
        }
        let other = try connection.changes("memory").cursor
        #expect(try error("sqlite", #""after":"\#(other)""#) == "cursor_expired")
        let described = try connection.call("collection.describe", #"{"collection":"sqlite"}"#).result
        #expect(described?["changes"]?.text == #"{"retention":604800}"#)
        let off = try connection.call("collection.describe", #"{"collection":"off"}"#).result
        #expect(off?["changes"]?.text == "false")
    }

    @Test func aBackendThatCannotIsAnErrorOfTheFile() throws {
        let marked = MarkedText(
            """
            state_directory: $DIRECTORY/state
            socket: {path: $DIRECTORY/crudd.sock}
            plugins: {directories: [$DIRECTORY/plugins]}
            backends:
              files: {plugin: filesystem, options: {directory: $DIRECTORY/files}}
              main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
            collections:
              a: {backend: files, changes: ¶true}
              b: {backend: files, changes: false}
              "*": {backend: files, changes: ¶{retention: 1d}}
              c: {backend: main, changes: {retention: 1d}}
            """)
        let installation = try Installation(text: marked.text)
        let outcome = try installation.check()
        #expect(outcome.status == .exited(78))
        #expect(outcome.errorLines.count == 2, "\(outcome.errors)")
        for position in marked.positions {
            let start = "\(installation.configurationFile):\(position): "
            #expect(outcome.errorLines.contains { $0.hasPrefix(start) }, "\(outcome.errors)")
        }
    }

    // MARK: Cursors

    @Test(arguments: [true, false])
    func cursorsSurviveRestarts(isKilled: Bool) throws {
        var daemon = try Daemon(Self.configuration())
        var connection = try daemon.connect()
        var cursors: [String: String] = [:]
        for collection in Self.durableFeeds {
            #expect(try connection.create(collection, "a", "1").result != nil)
            cursors[collection] = try connection.changes(collection).cursor
            #expect(try connection.create(collection, "b", "1").result != nil)
            #expect(try connection.delete(collection, "a").result != nil)
        }
        cursors["memory"] = try connection.changes("memory").cursor
        #expect(try connection.create("memory", "a", "1").result != nil)
        cursors["memory"] = try connection.changes("memory").cursor
        if isKilled { try daemon.kill() } else { try daemon.stop() }
        daemon = try daemon.restarted()
        connection = try daemon.connect()
        for collection in Self.durableFeeds {
            let page = try connection.changes(collection, after: cursors[collection] ?? "")
            #expect(page.changes.map { $0["id"]?.string } == ["b", "a"])
            #expect(page.changes.map { $0["deleted"]?.boolean } == [nil, true])
        }
        #expect(try connection.changesError("memory", after: cursors["memory"] ?? "") == "cursor_expired")
    }

    @Test func aDropEndsThem() throws {
        let daemon = try Daemon(Self.configuration())
        let connection = try daemon.connect()
        for collection in Self.feeds {
            #expect(try connection.create(collection, "a", "1").result != nil)
            let cursor = try connection.changes(collection).cursor
            #expect(try connection.call("collection.drop", #"{"collection":"\#(collection)"}"#).result != nil)
            #expect(try connection.changesError(collection, after: cursor) == "cursor_expired")
            #expect(try connection.changes(collection).changes.isEmpty)
            #expect(try connection.create(collection, "b", "1").result != nil)
            #expect(try connection.changesError(collection, after: cursor) == "cursor_expired")
            #expect(try connection.changes(collection).ids == ["b"])
        }
    }

    /// What was there before the feed is in it; a cursor of before it was off is not.
    @Test func turnedOnAndOff() throws {
        let daemon = try Daemon(Self.configuration(changes: "false"))
        let connection = try daemon.connect()
        for collection in Self.feeds {
            for id in 0..<100 { #expect(try connection.create(collection, "\(id)", "\(id)").result != nil) }
            #expect(try connection.changesError(collection, after: "start") == "unsupported")
        }
        var cursors: [String: String] = [:]
        for _ in 0..<2 {
            try daemon.installation.configure(Self.configuration(changes: "{retention: 1d}"))
            _ = try connection.reload()
            for collection in Self.feeds {
                if let cursor = cursors[collection] {
                    #expect(try connection.changesError(collection, after: cursor) == "cursor_expired", "\(collection)")
                }
                var ids: Set<String> = []
                var cursor = "start"
                var isComplete = false
                while !isComplete {
                    let page = try connection.changes(collection, after: cursor)
                    ids.formUnion(page.ids)
                    cursor = page.cursor
                    isComplete = !page.more
                }
                #expect(ids.count == 100, "\(collection)")
                cursors[collection] = cursor
            }
            try daemon.installation.configure(Self.configuration(changes: "false"))
            _ = try connection.reload()
            for collection in Self.feeds {
                #expect(try connection.changesError(collection, after: "start") == "unsupported")
                #expect(try connection.update(collection, "1", "2").result != nil)
            }
        }
    }

    @Test func removalsAreForgottenInTime() throws {
        let daemon = try Daemon(Self.configuration(changes: "{retention: 300ms}"))
        let connection = try daemon.connect()
        for collection in Self.feeds {
            #expect(try connection.create(collection, "a", "1").result != nil)
            #expect(try connection.create(collection, "b", "1").result != nil)
            let cursor = try connection.changes(collection).cursor
            #expect(try connection.delete(collection, "a").result != nil)
            // Not behind the page that has the removal: on a busy machine that is forgotten by now.
            let behind = try connection.changes(collection, after: "now").cursor
            let deadline = Deadline()
            while try connection.changesError(collection, after: cursor) == nil { try #require(!deadline.hasPassed) }
            #expect(try connection.changesError(collection, after: cursor) == "cursor_expired")
            #expect(try connection.changes(collection, after: behind).changes.isEmpty)
            // From the start, page by page, whatever has been forgotten.
            let page = try connection.changes(collection, after: "start", #""limit":1"#)
            #expect(page.ids == ["b"])
            #expect(try connection.changes(collection, after: page.cursor).changes.isEmpty)
        }
    }

    @Test func whatExpiresIsRemoved() throws {
        let daemon = try Daemon(Self.configuration())
        let connection = try daemon.connect()
        for collection in Self.feeds {
            let reply = try connection.call(
                "record.create", #"{"collection":"\#(collection)","id":"a","item":1,"ttl":3600}"#)
            try #require(reply.result != nil, "\(reply)")
            let first = try connection.changes(collection)
            #expect(first.changes.first?["expiresAt"]?.integer != nil)
            let touch = Connection.params(collection, "a", more: ["ttl": "0.2"])
            #expect(try connection.call("record.touch", touch).result != nil)
            var next = try connection.changes(collection, after: first.cursor, #""wait":20"#)
            if next.ids == ["a"] { next = try connection.changes(collection, after: next.cursor, #""wait":20"#) }
            #expect(next.changes.map(\.text) == [#"{"id":"a","deleted":true}"#])
        }
    }
}

extension Connection {
    struct ChangesPage {
        let changes: [JSON]
        let cursor: String
        let more: Bool

        init(_ reply: Reply) throws {
            guard let result = reply.result, let changes = result["changes"]?.elements,
                let cursor = result["cursor"]?.string, let more = result["more"]?.boolean
            else { throw Failure("no page: \(reply)") }
            self.changes = changes
            self.cursor = cursor
            self.more = more
        }

        /// Of those that are there.
        var ids: [String] { changes.filter { $0["deleted"] == nil }.compactMap { $0["id"]?.string } }
    }

    static func changesParams(_ collection: String, _ after: String? = nil, _ more: String = "") -> String {
        let after = after.map { #","after":"\#($0)""# } ?? ""
        return #"{"collection":"\#(collection)"\#(after)\#(more.isEmpty ? "" : ",")\#(more)}"#
    }

    func changes(_ collection: String, after: String? = nil, _ more: String = "") throws -> ChangesPage {
        try ChangesPage(call("collection.changes", Self.changesParams(collection, after, more)))
    }

    func changesError(_ collection: String, after: String) throws -> String? {
        try call("collection.changes", Self.changesParams(collection, after)).error?.name
    }
}
