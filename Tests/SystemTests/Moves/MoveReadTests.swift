import CRUDTestSupport
import Testing

/// Reads that wait for room while their collection moves to another format: they begin again in the new place.
@Suite struct MoveReadTests {
    private static let items = (0..<4).map { #"{"text":"\#(String(repeating: "\($0)", count: 150_000))"}"# }

    private func moved(_ rule: String) -> Configuration {
        MovePlaces.configuration(rule, limits: "session_bytes: 1MiB")
    }

    @Test(arguments: [
        ("{backend: files, format: xml}", "{backend: kid}"), ("{backend: kid}", "{backend: main, format: plist}"),
        ("{backend: kid, format: plist}", "{backend: files, format: xml}"),
    ])
    func longRecordsAreDecodedAsWhatTheyAreReadFrom(from: String, to: String) throws {
        let daemon = try Daemon(moved(from))
        let administrator = try daemon.connect()
        for (id, item) in Self.items.enumerated() {
            #expect(try administrator.create("c", "\(id)", item).result != nil)
        }
        let peer = try daemon.connect()
        let requests = (0..<200).map { number in
            number % 5 == 4
                ? Connection.request("record.readMany", #"{"collection":"c","ids":["1","2"]}"#, id: "\(number)")
                : Connection.request("record.read", Connection.params("c", "\(number % 4)"), id: "\(number)")
        }
        let bytes = requests.flatMap { Connection.frame($0) }
        let sent = try peer.sendUntilBlocked(bytes, timeout: .milliseconds(200))
        // Of what has been sent some reads have found more than there was room for.
        try daemon.installation.configure(moved(to))
        #expect(try administrator.reloadMoving() == ["c"])
        try administrator.awaitMoves()
        try peer.send(bytes[sent...])
        for reply in try peer.finish() {
            let number = try #require(reply.id.integer)
            let found = reply.result?["records"]?.elements ?? [reply.result].compactMap(\.self)
            let wanted = number % 5 == 4 ? [1, 2] : [number % 4]
            let isRight = found.map { $0["item"]?.text } == wanted.map { Self.items[$0] }
            #expect(isRight, "\(number): \(reply.error?.name ?? "another item")")
        }
        let isClean = !daemon.log.contains("corrupt")
        #expect(isClean, "\(daemon.log.prefix(2000))")
    }
}
