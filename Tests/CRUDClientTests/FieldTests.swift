import CRUDClient
import Foundation
import Testing

@Suite struct FieldTests {
    struct Presence: Codable, Hashable {
        @Field var isOnline: Bool? = nil
        @Field var seen: Date? = nil
        @Field var links: [String: String]? = nil
    }

    private func coded(_ presence: Presence) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return String(decoding: try encoder.encode(presence), as: UTF8.self)
    }

    private func decoded(_ text: String) throws -> Presence {
        try EncodedItem(json: text).decoded()
    }

    @Test func beginsAsAbsent() throws {
        let presence = Presence()
        #expect(presence.$isOnline == .absent)
        #expect(presence.isOnline == nil)
        #expect(try coded(presence) == "{}")
        #expect(Presence(isOnline: true).$isOnline == .value(true))
        struct Bare: Encodable { @Field var x: Int? }
        #expect(Bare().$x == .absent)
    }

    @Test func hasThreeStates() throws {
        var presence = Presence(isOnline: false, links: ["a": "b"])
        #expect(try coded(presence) == #"{"isOnline":false,"links":{"a":"b"}}"#)
        presence.isOnline = nil
        #expect(presence.$isOnline == .null)
        presence.links?["a"] = nil
        #expect(presence.$links == .value([:]))
        #expect(try coded(presence) == #"{"isOnline":null,"links":{}}"#)
        presence.$isOnline = .absent
        presence.$links = .null
        #expect(try coded(presence) == #"{"links":null}"#)
        presence.isOnline = true
        #expect(presence.$isOnline == .value(true))
    }

    @Test(arguments: [
        (#"{}"#, Field<Bool>.State.absent), (#"{"isOnline":null}"#, .null), (#"{"isOnline":true}"#, .value(true)),
    ])
    func comesBackFromItsText(_ text: String, _ state: Field<Bool>.State) throws {
        let presence = try decoded(text)
        #expect(presence.$isOnline == state)
        #expect(try coded(presence) == text)
    }

    @Test func usesTheCodingOfItsValue() throws {
        let presence = Presence(seen: Date(timeIntervalSince1970: 0))
        #expect(try EncodedItem(presence).json == #"{"seen":"1970-01-01T00:00:00.000000000Z"}"#)
        #expect(try decoded(#"{"seen":"1970-01-01T00:00:00Z"}"#) == presence)
        #expect(throws: DecodingError.self) { try decoded(#"{"isOnline":7}"#) }
    }

    @Test func isNullWhereNothingCanBeAbsent() throws {
        let fields = [Field<Int>(wrappedValue: 1), Field(.absent), Field(.null)]
        let item = try EncodedItem(fields)
        #expect(item.json == "[1,null,null]")
        #expect(try item.decoded(as: [Field<Int>].self).map(\.projectedValue) == [.value(1), .null, .null])
    }
}
