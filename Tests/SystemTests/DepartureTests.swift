import CRUDTestSupport
import Testing

/// Peers that leave, wholly or by half.
@Suite(.daemon) struct DepartureTests {
    @Test func aPeerThatShutsDownWritingGetsAllItsReplies() throws {
        let connection = try Daemon.shared.connect()
        var bytes: [UInt8] = []
        for number in 0..<500 {
            let params = Connection.params("half", "\(number)", item: "\(number)")
            bytes += Connection.frame(Connection.request("record.create", params, id: "\(number)"))
            bytes += Connection.frame(
                Connection.request("record.read", Connection.params("half", "\(number)"), id: "\"\(number)\""))
        }
        try connection.send(bytes)
        let replies = try connection.finish()
        #expect(replies.count == 1000)
        #expect(replies.allSatisfy { $0.result != nil })
        for reply in replies { if let id = reply.id.string { #expect(reply.result?["item"]?.text == id) } }
    }

    @Test func aPeerThatShutsDownWithoutARequestIsLetGo() throws {
        let connection = try Daemon.shared.connect()
        #expect(try connection.finish().isEmpty)
    }

    @Test(arguments: [1, 3, 4, 5, 40])
    func halfAFrameAtTheEndIsForgotten(length: Int) throws {
        let connection = try Daemon.shared.connect()
        let params = Connection.params("forgotten", "\(length)", item: "1")
        let whole = Connection.frame(Connection.request("daemon.ping", id: "1"))
        let half = Connection.frame(Connection.notification("record.create", params)).prefix(length)
        try connection.send(whole + half)
        let replies = try connection.finish()
        #expect(replies.map(\.id.text) == ["1"])
        #expect(try Daemon.shared.connect().exists("forgotten", "\(length)") == false)
    }

    @Test func peersThatVanishHarmNobody() throws {
        let daemon = try Daemon()
        let witness = try daemon.connect()
        #expect(try witness.create("c", "large", "\"" + String(repeating: "x", count: 1 << 20) + "\"").result != nil)
        let descriptors = try daemon.descriptorCount
        let read = Connection.frame(Connection.request("record.read", Connection.params("c", "large"), id: "1"))
        for round in 0..<50 {
            let connection = try daemon.connect()
            switch round % 5 {
            case 0: break
            case 1: try connection.send(Connection.header(100))
            case 2: try connection.send(read[..<10])
            case 3: try connection.send(read + read + read)
            default:
                try connection.send(read + read + read)
                _ = try connection.receiveFrame()
            }
            connection.close()
            #expect(try witness.isUsable())
        }
        let deadline = Deadline()
        while try daemon.descriptorCount > descriptors + 8 {
            try #require(!deadline.hasPassed, "the daemon keeps descriptors of peers that have gone")
            #expect(try witness.isUsable())
        }
    }
}
