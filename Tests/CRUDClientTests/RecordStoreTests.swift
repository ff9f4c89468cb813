import CRUDClient
import Foundation
import ScriptedDaemon
import Testing

/// The requests for queries, patches and batches of a RemoteRepository.
@Suite struct RecordStoreTests {
    /// Runs a daemon that sends these replies, one to each request; returns the `params` of the requests, method first.
    private func sent(
        replying replies: [String], _ calls: (RemoteRepository) async throws -> Void
    ) async throws -> [String] {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let requests = try replies.map { reply in
                let request = try peer.request()
                try peer.reply(to: request, reply)
                let start = try #require(request.text.range(of: #""params":"#)).upperBound
                return "\(request.method) \(request.text[start...].dropLast())"
            }
            try peer.awaitClosing()
            return requests
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        try await calls(client.repository("c"))
        await client.close()
        return try await daemon.finish()
    }

    @Test func appliesFieldOperations() async throws {
        var operations = FieldOperations()
        #expect(operations.isEmpty)
        operations.increment("visits", by: 1)
        operations.increment("a.b", by: 0.1)
        operations.decrement("c\\.d", by: UInt8(2))
        operations.decrement("e", by: -3)
        operations.minimum("f", 4)
        operations.maximum("g", Float(0.5))
        operations.append(["x"], to: "h")
        operations.append([Date?.none], to: "h")
        operations.add([1, 2], to: "i")
        operations.remove([["k": 1]], from: "j")
        let members =
            #""increment":{"visits":1,"a.b":0.1,"c\\.d":-2,"e":3},"minimum":{"f":4},"maximum":{"g":0.5},"#
            + #""append":{"h":["x",null]},"add":{"i":[1,2]},"remove":{"j":[{"k":1}]}"#
        let made = operations
        let requests = try await self.sent(
            replying: [
                #"{"revision":"2","item":{"a":1}}"#, #"{"revision":"3","item":{"a":1}}"#,
                #"{"results":[{"result":{"revision":"4","item":1}}]}"#,
            ]
        ) { store in
            #expect(try await store.patch(id: "i", applying: made) == ["a": 1])
            let record = try await store.patch(
                id: "i", with: EncodedItem(1), applying: made, ifRevision: Revision("1"), upsert: true,
                expiry: .never, as: [String: Int].self)
            #expect(record.revision == Revision("3"))
            _ = try await store.batch([RecordOperation(.apply(made), id: "i")])
            // What cannot be sent is not sent.
            for make in Self.unsendable {
                var operations = made
                make(&operations)
                let bad = operations
                let error = await #expect(throws: CRUDError.self) {
                    try await store.patch(id: "i", applying: bad, as: Int.self)
                }
                #expect(error?.code == .invalidParams)
            }
        }
        #expect(
            requests == [
                #"record.patch {"collection":"c","id":"i",\#(members)}"#,
                #"record.patch {"collection":"c","id":"i","patch":1,\#(members),"ifRevision":"1","upsert":true"#
                    + #","ttl":null}"#,
                #"record.batch {"operations":[{"op":"patch","collection":"c","id":"i",\#(members)}]}"#,
            ])
    }

    private static let unsendable: [@Sendable (inout FieldOperations) -> Void] = [
        { $0.increment("x", by: Double.nan) }, { $0.append([Double.infinity], to: "x") },
        { $0.increment("a\\b", by: 1) },
    ]

    @Test func patches() async throws {
        let reply = #"{"revision":"2","item":{"a":1}}"#
        let requests = try await sent(replying: [reply, reply]) { store in
            let patch = try EncodedItem(json: #"{"a":1.0,"b":null}"#)
            let record = try await store.patch(
                id: "i", with: patch, ifRevision: Revision("1"), upsert: true, as: [String: Int].self)
            #expect(record.item == ["a": 1])
            #expect(record.revision == Revision("2"))
            #expect(try await store.patch(id: "i", with: [1]) == ["a": 1])
        }
        #expect(
            requests == [
                #"record.patch {"collection":"c","id":"i","patch":{"a":1.0,"b":null},"ifRevision":"1","upsert":true}"#,
                #"record.patch {"collection":"c","id":"i","patch":[1]}"#,
            ])
    }

    @Test func queries() async throws {
        let replies = [
            #"{"records":[{"id":"a","item":7,"revision":"1"}],"cursor":"more","corrupt":["b","c"]}"#,
            #"{"records":[]}"#, #"{"count":3}"#,
            #"{"count":4}"#, #"{"deleted":5}"#, #"{"deleted":6}"#,
        ]
        let path = PropertyPath(names: ["a", "b.c"])
        let selection = RecordSelection(filter: .comparison(.less, path, 18), prefix: "p")
        let requests = try await sent(replying: replies) { store in
            let sort = SortOrder([SortKey(path, isDescending: true)])
            let first = RecordQuery(selection, sort: sort, limit: 1, cursor: Cursor("here"))
            let page = try await store.query(first, as: Int.self)
            #expect(page.records.map(\.item) == [7])
            #expect(page.next?.text == "more")
            #expect(page.corrupt == ["b", "c"])
            let last = try await store.query(RecordQuery(), as: Int.self)
            #expect(last.next == nil)
            #expect(last.corrupt.isEmpty)
            #expect(try await store.count(selection) == 3)
            #expect(try await store.count(.all) == 4)
            #expect(try await store.deleteMatching(selection) == 5)
            #expect(try await store.deleteMatching(.all) == 6)
        }
        let selected = #""collection":"c","filter":{"op":"<","args":[{"property":"a.b\\.c"},18]},"prefix":"p""#
        let rest = #","sort":[{"property":"a.b\\.c","order":"desc"}],"limit":1,"cursor":"here""#
        #expect(
            requests == [
                "record.query {\(selected)\(rest)}", #"record.query {"collection":"c"}"#, "record.count {\(selected)}",
                #"record.count {"collection":"c"}"#, "record.deleteMatching {\(selected)}",
                #"record.deleteMatching {"collection":"c","all":true}"#,
            ])
    }

    @Test func batches() async throws {
        let failure = #"{"error":{"code":-32002,"message":"m","data":{"name":"record_exists","retryable":false}}}"#
        let done = #"{"result":{"revision":"3"}},{"result":{"revision":"4"}}"#
        let others = #"{"result":{"revision":"5","item":{"a":2}}},{"result":{}},{"result":{}},{"result":{}}"#
        let replies = [#"{"results":[\#(failure),\#(done),\#(others)]}"#, #"{"results":[{"result":{}}]}"#]
        let requests = try await sent(replying: replies) { store in
            let item = try EncodedItem(1)
            let results = try await store.batch([
                RecordOperation(.create(item), id: "a"),
                RecordOperation(.update(item, ifRevision: Revision("1")), id: "a", in: "d"),
                RecordOperation(.upsert(item), id: "b"), RecordOperation(.patch(item, upsert: true), id: "b"),
                RecordOperation(.delete(ifRevision: Revision("2")), id: "b"), RecordOperation(.check(nil), id: "b"),
                RecordOperation(.check(Revision("3")), id: "b"),
            ])
            if case .failure(let error) = results[0] {
                #expect(error.code == .recordExists)
            } else {
                Issue.record("created")
            }
            #expect(try results[1].get().revision == Revision("3"))
            #expect(try results[3].get().item?.json == #"{"a":2}"#)
            #expect(try results[4].get().revision == nil)
            #expect(try await store.transaction([RecordOperation(.delete(), id: "x")]).count == 1)
        }
        let operations = [
            #"{"op":"create","collection":"c","id":"a","item":1}"#,
            #"{"op":"update","collection":"d","id":"a","item":1,"ifRevision":"1"}"#,
            #"{"op":"upsert","collection":"c","id":"b","item":1}"#,
            #"{"op":"patch","collection":"c","id":"b","patch":1,"upsert":true}"#,
            #"{"op":"delete","collection":"c","id":"b","ifRevision":"2"}"#,
            #"{"op":"check","collection":"c","id":"b","ifRevision":null}"#,
            #"{"op":"check","collection":"c","id":"b","ifRevision":"3"}"#,
        ]
        #expect(
            requests == [
                #"record.batch {"operations":[\#(operations.joined(separator: ","))]}"#,
                #"record.batch {"operations":[{"op":"delete","collection":"c","id":"x"}],"atomic":true}"#,
            ])
    }

    /// Replies that lack a required member, and one with too few results.
    @Test func tellsAMalformedReply() async throws {
        let replies = ["{}", "{}", "[]", "{}", #"{"results":[]}"#, #"{"results":[{"error":{}}]}"#]
        _ = try await sent(replying: replies) { store in
            let operation = RecordOperation(.delete(), id: "x")
            let calls: [() async throws -> Void] = [
                { _ = try await store.patch(id: "i", with: [1], as: Int.self) },
                { _ = try await store.query(RecordQuery(), as: Int.self) }, { _ = try await store.count(.all) },
                { _ = try await store.deleteMatching(.all) }, { _ = try await store.batch([operation]) },
                { _ = try await store.batch([operation]) },
            ]
            for call in calls {
                let error = await #expect(throws: CRUDError.self) { try await call() }
                #expect(error?.code == .internalError)
            }
        }
    }

    @Test func asksForPagesUntilTheLast() async throws {
        let replies = [
            #"{"records":[{"id":"a","item":1,"revision":"1"}],"cursor":"x"}"#, #"{"records":[],"cursor":"y"}"#,
            #"{"records":[{"id":"b","item":2,"revision":"1"},{"id":"c","item":3,"revision":"1"}]}"#,
        ]
        let requests = try await sent(replying: replies + [replies[0], replies[2]]) { store in
            let numbers = Repository<Int>(store)
            let all = try await numbers.fetchAll()
            #expect(all == [1, 2, 3])
            // A store that returns more than the limit does not make a query longer.
            let two = try await numbers.fetch(Query().limited(to: 2))
            #expect(two == [1, 2])
        }
        #expect(
            requests == [
                #"record.query {"collection":"c"}"#, #"record.query {"collection":"c","cursor":"x"}"#,
                #"record.query {"collection":"c","cursor":"y"}"#, #"record.query {"collection":"c","limit":2}"#,
                #"record.query {"collection":"c","limit":1,"cursor":"x"}"#,
            ])
    }
}
