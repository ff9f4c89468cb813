import CRUDClient
import Foundation
import ScriptedDaemon
import Testing

@Suite struct RemoteRepositoryTests {
    struct Client: Codable, Equatable {
        var name: String
        var balance = Decimal(string: "12345678901234567890.0123456789")
        var since = Date(timeIntervalSinceReferenceDate: 800_000_000.123_456_7)
        var visits = UInt64.max
        var tags: [String: Int] = [:]
        var website: URL?
    }

    /// Replies to one `record.create` or `record.update`, then to a `record.read` with the item that was sent.
    private func keeper() throws -> ScriptedDaemon<String> {
        try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let write = try peer.request()
            try peer.reply(to: write, #"{"revision":"1"}"#)
            let start = try #require(write.text.range(of: #","item":"#)).upperBound
            let item = String(write.text[start...].dropLast(2))
            try peer.reply(to: try peer.request(), #"{"id":"x","item":\#(item),"revision":"1"}"#)
            try peer.awaitClosing()
            return item
        }
    }

    private func expectSame<Item: Codable & Equatable>(_ item: Item, spelled text: String? = nil) async throws {
        let daemon = try keeper()
        let client = try await CRUDClient.connect(path: daemon.path)
        let repository = client.repository("Clients Database")
        try await repository.create(id: "x", item: item)
        let back: Item = try await repository.read(id: "x")
        #expect(back == item)
        await client.close()
        let stored = try await daemon.finish()
        if let text { #expect(stored == text) }
    }

    @Test func keepsItemsOfEveryKind() async throws {
        try await expectSame(Client(name: "Chill Client 😎/\"\\"))
        try await expectSame([Client(name: "a"), Client(name: "b", website: URL(string: "https://example.org/a?b=c"))])
        try await expectSame(true, spelled: "true")
        try await expectSame("text", spelled: #""text""#)
        try await expectSame([Int](), spelled: "[]")
        try await expectSame(Int?.none, spelled: "null")
    }

    @Test func keepsNumbersDigitForDigit() async throws {
        try await expectSame(Int64.max, spelled: "9223372036854775807")
        try await expectSame(Int64.min, spelled: "-9223372036854775808")
        try await expectSame(UInt64.max, spelled: "18446744073709551615")
        try await expectSame(0.1, spelled: "0.1")
        for digits in [
            "12345678901234567890123456789012345678", "0.1", "-0.00000000000000000000000000000000000001", "100",
        ] {
            try await expectSame(try #require(Decimal(string: digits)))
        }
        try await expectSame(
            try #require(Decimal(string: "3.14159265358979323846264338327950288419")),
            spelled: "3.14159265358979323846264338327950288419")
    }

    @Test func writesDatesAsRFC3339() async throws {
        try await expectSame(Date(timeIntervalSince1970: 0), spelled: #""1970-01-01T00:00:00.000000000Z""#)
    }

    @Test func letsADecodingErrorPass() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            try peer.reply(to: try peer.request(), #"{"id":"x","item":{"name":7},"revision":"1"}"#)
            try peer.awaitClosing()
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        await #expect(throws: DecodingError.self) {
            try await client.repository("things").read(id: "x", as: Client.self)
        }
        await client.close()
        try await daemon.finish()
    }

    @Test func sendsWhatTheProtocolAsksFor() async throws {
        let replies = [
            #"{"revision":"1"}"#, #"{"revision":"2"}"#, #"{"revision":"3"}"#, #"{"revision":"4","created":false}"#,
            #"{"revision":"5","created":true}"#, #"{"exists":false}"#, "{}", "{}",
            #"{"records":[{"id":"b","item":1,"revision":"8"},{"id":"a","item":2,"revision":"9"}],"missing":["c"]}"#,
        ]
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let sent = try replies.map { reply in
                let request = try peer.request()
                try peer.reply(to: request, reply)
                return request.text
            }
            try peer.awaitClosing()
            return sent
        }
        let repository = try await CRUDClient.connect(path: daemon.path).repository("c")
        #expect(try await repository.create(id: "i", item: 1) == Revision("1"))
        #expect(try await repository.update(id: "i", item: 1) == Revision("2"))
        #expect(try await repository.update(id: "i", item: 1, ifRevision: Revision("2")) == Revision("3"))
        #expect(try await repository.upsert(id: "i", item: 1) == Revision("4"))
        #expect(try await repository.upsert(id: "i", item: 1, ifRevision: Revision("4")) == Revision("5"))
        #expect(try await repository.exists(id: "i") == false)
        try await repository.delete(id: "i")
        try await repository.delete(id: "i", ifRevision: Revision("7"))
        let records = try await repository.readVersioned(ids: ["b", "a", "c"], as: Int.self)
        #expect(records.map(\.id) == ["b", "a"])
        #expect(records.map(\.item) == [1, 2])
        #expect(records.map(\.revision) == [Revision("8"), Revision("9")])
        await repository.client.close()
        let rest = [
            #""method":"record.create","params":{"collection":"c","id":"i","item":1}}"#,
            #""method":"record.update","params":{"collection":"c","id":"i","item":1}}"#,
            #""method":"record.update","params":{"collection":"c","id":"i","item":1,"ifRevision":"2"}}"#,
            #""method":"record.upsert","params":{"collection":"c","id":"i","item":1}}"#,
            #""method":"record.upsert","params":{"collection":"c","id":"i","item":1,"ifRevision":"4"}}"#,
            #""method":"record.exists","params":{"collection":"c","id":"i"}}"#,
            #""method":"record.delete","params":{"collection":"c","id":"i"}}"#,
            #""method":"record.delete","params":{"collection":"c","id":"i","ifRevision":"7"}}"#,
            #""method":"record.readMany","params":{"collection":"c","ids":["b","a","c"]}}"#,
        ]
        for (index, text) in try await daemon.finish().enumerated() {
            #expect(text == #"{"jsonrpc":"2.0","id":\#(index + 1),"# + rest[index])
        }
    }

    /// Limits that make no sense lead to smaller requests, and to an end.
    @Test(arguments: [0, -7, 3, 1_000_000])
    func readsManyWhateverLimitTheDaemonTells(_ maximum: Int) async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            var lengths: [Int] = []
            while true {
                let request = try peer.request()
                guard request.method == "record.readMany" else {
                    try peer.reply(to: request, "{}")
                    try peer.awaitClosing()
                    return lengths
                }
                let length = request.text.split(separator: "\"id-").count - 1
                lengths.append(length)
                if length > 3 {
                    let details = #""details":{"limit":"batch","maximum":\#(maximum)}"#
                    let data = #"{"name":"limit_exceeded",\#(details)}"#
                    try peer.reject(request, #"{"code":-32007,"message":"","data":\#(data)}"#)
                } else {
                    try peer.reply(to: request, #"{"records":[],"missing":[]}"#)
                }
            }
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        let records = try await client.repository("c").readVersioned(ids: (0..<7).map { "id-\($0)" }, as: Int.self)
        #expect(records.isEmpty)
        try await client.ping()
        await client.close()
        let lengths = try await daemon.finish()
        #expect(lengths.filter { $0 <= 3 }.reduce(0, +) == 7, "\(lengths)")
    }

    @Test func sendsIDsByteForByte() async throws {
        let ids = ["é", "e\u{301}", "../../etc/passwd", "'; DROP TABLE clients; --", "\"\\", "😀"]
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let received = try ids.map { _ in
                let request = try peer.request()
                try peer.reply(to: request, #"{"exists":true}"#)
                return Array((request.strings["id"] ?? "").utf8)
            }
            try peer.awaitClosing()
            return received
        }
        let repository = try await CRUDClient.connect(path: daemon.path).repository("c")
        for id in ids { _ = try await repository.exists(id: id) }
        await repository.client.close()
        #expect(try await daemon.finish() == ids.map { Array($0.utf8) })
    }

    @Test func callsAnyMethodRaw() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let request = try peer.request()
            try peer.reply(to: request, #"{"number":1.50e+0}"#)
            try peer.awaitClosing()
            return request.text
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        #expect(try await client.call("some.method", params: #"{"a":0.10}"#) == #"{"number":1.50e+0}"#)
        let error = await #expect(throws: CRUDError.self) {
            try await client.call("record.delete", params: #"{"id":"x"},"method":"other""#)
        }
        #expect(error?.code == .parseError)
        #expect(error?.message.contains("line 1, column 11") == true)
        await client.close()
        #expect(try await daemon.finish() == #"{"jsonrpc":"2.0","id":1,"method":"some.method","params":{"a":0.10}}"#)
    }

    @Test func comparesRevisionsByBytes() {
        #expect(Revision("\u{E9}") != Revision("e\u{301}"))
        #expect(Revision("a") == Revision("a"))
        #expect(Set([Revision("\u{E9}"), Revision("e\u{301}"), Revision("\u{E9}")]).count == 2)
    }
}
