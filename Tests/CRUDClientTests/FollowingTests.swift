import CRUDClient
import Foundation
import ScriptedDaemon
import Testing

/// Changes, and what happens to those who follow them.
@Suite(.timeLimit(.minutes(1))) struct FollowingTests {
    private static func page(_ cursor: String, _ changes: String...) -> String {
        #"{"changes":[\#(changes.joined(separator: ","))],"cursor":"\#(cursor)","more":false}"#
    }

    private static let unavailable = #"{"code":-32008,"message":"down","data":{}}"#
    private static let expired = #"{"code":-32014,"message":"forgotten","data":{}}"#

    @Test func survivesLostConnectionsAndUnavailability() async throws {
        let daemon = try ScriptedDaemon { listener in
            var requests: [String] = []
            func next(_ peer: ScriptedPeer) throws -> ScriptedRequest {
                let request = try peer.request()
                requests.append(request.strings["after"] ?? request.text)
                return request
            }
            let first = try listener.accept()
            let saved = #"{"id":"a","item":[1.50],"revision":"7","expiresAt":1500}"#
            try first.reply(to: next(first), Self.page("c1", saved, #"{"id":"b","deleted":true}"#))
            _ = try next(first)
            listener.stop()
            first.close()
            try listener.listen()
            let second = try listener.accept()
            for _ in 0..<2 { try second.reject(next(second), Self.unavailable) }
            try second.reply(to: next(second), Self.page("c2"))
            try second.reply(to: next(second), Self.page("c3", #"{"id":"c","revision":"9","matches":false}"#))
            try second.reject(next(second), Self.expired)
            try second.awaitClosing()
            return requests
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        var changes = client.repository("things").changes().makeAsyncIterator()
        let saved = try await changes.next()
        guard case .saved(let record) = saved?.kind else {
            Issue.record("not saved")
            return
        }
        #expect(record.id == "a")
        #expect(record.item.json == "[1.50]")
        #expect(record.revision == Revision("7"))
        #expect(record.expiresAt == Date(timeIntervalSince1970: 1.5))
        // Not before the last change of its page has been processed does the cursor move.
        #expect(saved?.cursor.text == "start")
        let removed = try await changes.next()
        guard case .removed("b") = removed?.kind else {
            Issue.record("not removed")
            return
        }
        #expect(removed?.cursor.text == "c1")
        let unmatched = try await changes.next()
        guard case .unmatched("c") = unmatched?.kind else {
            Issue.record("not unmatched")
            return
        }
        #expect(unmatched?.cursor.text == "c3")
        let error = await #expect(throws: CRUDError.self) { try await changes.next() }
        #expect(error?.code == .cursorExpired)
        #expect(try await changes.next() == nil)
        await client.close()
        #expect(try await daemon.finish() == ["start", "c1", "c1", "c1", "c1", "c2", "c3"])
    }

    @Test func asksForNoPageBeforeItIsNeeded() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let place = try peer.request()
            try peer.reply(to: place, Self.page("c1"))
            let request = try peer.request()
            let deleted = #"{"id":"a","deleted":true}"#
            try peer.reply(to: request, Self.page("c2", deleted, deleted))
            try peer.awaitClosing()
            return [place.text, request.text]
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        let query = Query<[Int]>().withIDs(startingWith: "p")
        var changes = client.repository("things", of: [Int].self).changes(query, after: .now).makeAsyncIterator()
        for _ in 0..<2 { #expect(try await changes.next()?.id == "a") }
        await client.close()
        let requests = try await daemon.finish()
        #expect(requests[0].hasSuffix(#""params":{"collection":"things","after":"now","prefix":"p"}}"#))
        #expect(requests[1].hasSuffix(#""params":{"collection":"things","after":"c1","prefix":"p","wait":15}}"#))
        // A closed client is not waited for.
        let error = await #expect(throws: CRUDError.self) { try await changes.next() }
        #expect(error?.code == .unavailable)
    }

    @Test func namesCorruptRecords() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            try peer.reply(to: peer.request(), Self.page("c1").dropLast() + #","corrupt":["a"]}"#)
            try peer.reply(to: peer.request(), Self.page("c2"))
            try peer.awaitClosing()
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        #expect(try await client.repository("things").changes(ChangeQuery()).corrupt == ["a"])
        #expect(try await client.repository("things").changes(ChangeQuery()).corrupt.isEmpty)
        await client.close()
        try await daemon.finish()
    }

    /// An item that is no Model leaves the changes before it.
    @Test func passesADecodingErrorOn() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let changes = ["17", #""x""#].map { #"{"id":"a","item":\#($0),"revision":"1"}"# }
            try peer.reply(to: peer.request(), Self.page("c1", changes[0], changes[1]))
            try peer.awaitClosing()
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        var changes = client.repository("things", of: Int.self).changes().makeAsyncIterator()
        #expect(try await changes.next()?.id == "a")
        await #expect(throws: DecodingError.self) { try await changes.next() }
        #expect(try await changes.next() == nil)
        await client.close()
        try await daemon.finish()
    }

    @Test func honoursCancellationAndDeadlines() async throws {
        let (received, counted) = (Signal(), Signal())
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            var requests = [try peer.request()]
            received.send()
            // The request of which a deadline is the end waits, too.
            while let request = try? peer.request() {
                requests.append(request)
                if request.method == "record.count" { counted.send() }
            }
            return requests
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        let changes = client.repository("things").changes()
        let task = Task {
            for try await _ in changes {}
        }
        await received.wait()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        // Long enough for the request to be sent on a busy machine.
        await CRUDClient.withDeadline(in: .seconds(2)) {
            let error = await #expect(throws: CRUDError.self) {
                for try await _ in changes {}
            }
            #expect(error?.code == .timedOut)
        }
        // A call that only reads and is not held back is left to its end.
        let read = Task { try await client.repository("things").count(.all) }
        await counted.wait()
        read.cancel()
        await #expect(throws: CancellationError.self) { try await read.value }
        await client.close()
        let requests = try await daemon.finish()
        let methods = ["collection.changes", "request.cancel", "collection.changes", "request.cancel", "record.count"]
        try #require(requests.map(\.method) == methods)
        for index in [1, 3] {
            #expect(requests[index].id == -1)
            #expect(requests[index].text.hasSuffix(#""params":{"id":\#(requests[index - 1].id)}}"#))
        }
    }

    @Test func sendsLifetimesInSeconds() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let requests = try (0..<7).map { _ in
                let request = try peer.request()
                try peer.reply(to: request, #"{"revision":"1","item":{},"results":[{"result":{}},{"result":{}}]}"#)
                return request
            }
            try peer.awaitClosing()
            return requests.map { request -> String? in
                request.text.firstRange(of: #""ttl""#).map { String(request.text[$0.lowerBound...]) }
            }
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        let store = client.repository("things")
        let lifetimes: [Duration?] = [nil, .seconds(60), .milliseconds(1500), .nanoseconds(1), .milliseconds(-1)]
        for lifetime in lifetimes { try await store.create(id: "x", item: 1, expiresIn: lifetime) }
        try await store.patch(id: "x", with: [String: Int](), expiresIn: nil, as: [String: Int].self)
        try await store.batch([
            RecordOperation(.delete(), id: "x", expiry: .never),
            RecordOperation(.patch(EncodedItem([1])), id: "x", expiry: .after(.seconds(1) / 3)),
        ])
        await client.close()
        let expected = [
            nil, #""ttl":60}}"#, #""ttl":1.500}}"#, #""ttl":0.001}}"#, #""ttl":-0.001}}"#, #""ttl":null}}"#,
            #""ttl":0.334,"patch":[1]}]}}"#,
        ]
        #expect(try await daemon.finish() == expected)
    }
}
