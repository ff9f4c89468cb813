import CRUDClient
import Foundation
import ScriptedDaemon
import Testing

/// The ids under which models are stored.
@Suite struct PrimaryKeyTests {
    struct Pair: Encodable, Persistable {
        static let primaryKey = PrimaryKey(\Pair.team, \Pair.number, \Pair.device)

        var team: String
        var number: Int8
        var device = UUID(uuid: (0xAB, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
        /// Not the record's id.
        var id = 99
    }

    struct Single: Encodable, Persistable {
        static let primaryKey = PrimaryKey(\Single.name)

        var name: String
    }

    @Test(arguments: [("a", "a"), ("a:b", "a%3Ab"), ("a%3Ab", "a%253Ab"), ("", ""), ("é\u{301}", "é\u{301}")])
    func joinsSeveralKeys(_ team: String, _ part: String) {
        let id = Pair(team: team, number: -7).recordID
        #expect(Array(id.utf8) == Array("\(part):-7:ab020304-0506-0708-090a-0b0c0d0e0f10".utf8))
    }

    @Test func takesASingleKeyAsItIs() {
        #expect(Single(name: "a:b%").recordID == "a:b%")
        #expect(Single(name: "a:b%").id == "a:b%")
    }

    // MARK: Models that are Identifiable

    struct Model<ID: Hashable & Codable & Sendable>: Codable, Identifiable, Sendable {
        var id: ID
    }

    struct OrderNumber: Hashable, Codable, LosslessStringConvertible {
        var number: Int

        init(number: Int) { self.number = number }

        init?(_ description: String) { return nil }

        var description: String { "#\(number)" }
    }

    /// The id that is sent for a model.
    private func sentID<ID>(_ id: ID) async throws -> String where ID: Hashable & Codable & Sendable {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let request = try peer.request()
            try peer.reply(to: request, #"{"revision":"1"}"#)
            try peer.awaitClosing()
            return request.strings["id"] ?? ""
        }
        let client = try await CRUDClient.connect(path: daemon.path)
        try await client.repository("c", of: Model<ID>.self).create(Model(id: id))
        await client.close()
        return try await daemon.finish()
    }

    @Test func storesUnderTheIDOfAModel() async throws {
        #expect(try await sentID("a:b%") == "a:b%")
        #expect(try await sentID(UInt64.max) == "18446744073709551615")
        #expect(try await sentID(-5) == "-5")
        let device = UUID(uuid: (0xAB, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xFF))
        #expect(try await sentID(device) == "ab020304-0506-0708-090a-0b0c0d0e0fff")
        #expect(try await sentID(OrderNumber(number: 17)) == "#17")
    }

    @Test func refusesAnIDWithoutAText() async throws {
        let daemon = try ScriptedDaemon { try $0.accept().awaitClosing() }
        let client = try await CRUDClient.connect(path: daemon.path)
        let error = await #expect(throws: CRUDError.self) {
            try await client.repository("c", of: Model<[Int]>.self).create(Model(id: [1]))
        }
        #expect(error?.code == .invalidParams)
        #expect(error?.details.member == "id")
        await client.close()
        try await daemon.finish()
    }
}
