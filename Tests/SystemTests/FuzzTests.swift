import CRUDTestSupport
import Testing

/// Broken frames by the thousand. The daemon replies or closes; it never dies, and nobody else notices.
@Suite struct FuzzTests {
    private static let seeds = [
        Connection.request("daemon.ping", id: "1"),
        Connection.request(
            "record.create", Connection.params("f", "a", item: #"{"a":[1,2.5e3,"\u00e9😀"],"b":null}"#), id: "2"),
        Connection.request(
            "record.read", Connection.params("f", "a", more: ["fields": #"["a","b.c"]"#]), id: #""x\n""#),
        Connection.request("record.update", Connection.params("f", "a", item: "1", ifRevision: "r"), id: "null"),
        Connection.request("record.upsert", Connection.params("f", "é", item: "[[[[[]]]]]"), id: "-5"),
        Connection.request("record.delete", Connection.params("f", "a"), id: "3"),
        Connection.request("record.readMany", #"{"collection":"f","ids":["a","b","\ud83d\ude00"]}"#, id: "4"),
        Connection.request("collection.describe", #"{"collection":"f"}"#, id: "5"),
        Connection.request("session.hello", #"{"client":"fuzz","protocol":1}"#, id: "6"),
        Connection.notification("record.upsert", Connection.params("f", "n", item: "true")),
        Connection.request("request.cancel", #"{"id":2}"#, id: "9"),
        Connection.notification("request.cancel", #"{"id":"x\n"}"#),
        "[" + Connection.request("daemon.ping", id: "7") + "," + Connection.request("record.read", "{}", id: "8")
            + ",1]",
    ]

    @Test(arguments: [1, 2, 3])
    func brokenFramesAreSurvived(seed: UInt64) throws {
        let daemon = try Daemon()
        let witness = try daemon.connect()
        #expect(try witness.create("witness", "a", #""untouched""#).result != nil)
        var random = SeededGenerator(seed: seed)
        try fuzz(daemon, witness, rounds: 30, &random)
        let before = try daemon.residentBytes
        try fuzz(daemon, witness, rounds: 200, &random)
        #expect(try daemon.residentBytes - before < 64 << 20)
        #expect(try witness.item("witness", "a") == #""untouched""#)
        #expect(try daemon.stop() == .exited(0))
    }

    /// Each round is one connection: some dozens of frames, then its end, one way or another.
    private func fuzz(
        _ daemon: Daemon, _ witness: Connection, rounds: Int, _ random: inout SeededGenerator
    ) throws {
        for round in 0..<rounds {
            let connection = try daemon.connect()
            var bytes: [UInt8] = []
            for _ in 0..<40 { bytes += mutated(&random) }
            // The daemon may have closed already: that is a reply too.
            try connection.send(bytes)
            if random.next() % 4 == 0 {
                connection.close()
            } else {
                try connection.shutDownWriting()
                while let frame = try connection.receiveFrame() {
                    let message = try JSON(parsing: frame)
                    for reply in message.elements ?? [message] {
                        #expect(try Reply(reply).error?.name != "internal_error", "\(reply.text)")
                    }
                }
            }
            try #require(try witness.isUsable(), "round \(round)")
        }
    }

    /// A frame with something wrong in its body, or, more rarely, in its length.
    private func mutated(_ random: inout SeededGenerator) -> [UInt8] {
        var body = Array(Self.seeds[Int(random.next() % UInt64(Self.seeds.count))].utf8)
        for _ in 0..<random.next() % 4 {
            let position = Int(random.next() % UInt64(max(body.count, 1)))
            guard position < body.count else { break }
            switch random.next() % 6 {
            case 0: body[position] ^= 1 << UInt8(random.next() % 8)
            case 1: body[position] = UInt8(truncatingIfNeeded: random.next())
            case 2: body.remove(at: position)
            case 3: body.insert(Array("{}[]\",:\\0u-e.\u{0} ".utf8).randomElement(using: &random) ?? 0, at: position)
            case 4: body.removeSubrange(position..<min(body.count, position + Int(random.next() % 16)))
            default:
                let other = Array(Self.seeds[Int(random.next() % UInt64(Self.seeds.count))].utf8)
                body.replaceSubrange(position..., with: other.suffix(Int(random.next() % UInt64(other.count))))
            }
        }
        var frame = Connection.frame(body)
        if random.next() % 200 == 0 { frame[Int(random.next() % 4)] ^= 1 << UInt8(random.next() % 8) }
        return frame
    }
}
