import CRUDTestSupport
import Testing

/// `params`: what each method takes, and how it says what is wrong.
@Suite(.daemon) struct ParameterTests {
    private static let recordMethods = [
        "record.create", "record.read", "record.update", "record.delete", "record.upsert", "record.exists",
    ]

    @Test func aMissingMemberIsNamed() throws {
        let connection = try Daemon.shared.connect()
        for method in Self.recordMethods {
            let item = Self.hasItem(method) ? #","item":1"# : ""
            try expectError(connection, method, #"{"id":"a"\#(item)}"#, member: "collection")
            try expectError(connection, method, #"{"collection":"c"\#(item)}"#, member: "id")
            if Self.hasItem(method) {
                try expectError(connection, method, #"{"collection":"c","id":"a"}"#, member: "item")
            }
        }
        try expectError(connection, "record.readMany", #"{"collection":"c"}"#, member: "ids")
        try expectError(connection, "record.readMany", #"{"ids":[]}"#, member: "collection")
        try expectError(connection, "collection.describe", "{}", member: "collection")
        try expectError(connection, "collection.describe", nil, member: "collection")
    }

    @Test func anUnknownMemberIsNamed() throws {
        let connection = try Daemon.shared.connect()
        for method in Self.recordMethods {
            let item = Self.hasItem(method) ? #","item":1"# : ""
            try expectError(
                connection, method, #"{"collection":"c","id":"a"\#(item),"colour":1}"#, member: "colour")
        }
        for method in ["record.create", "record.read", "record.exists"] {
            let item = Self.hasItem(method) ? #","item":1"# : ""
            let params = #"{"collection":"c","id":"a"\#(item),"ifRevision":"x"}"#
            try expectError(connection, method, params, member: "ifRevision")
        }
        try expectError(connection, "record.read", #"{"collection":"c","id":"a","item":1}"#, member: "item")
        try expectError(
            connection, "record.readMany", #"{"collection":"c","ids":[],"fields":[]}"#, member: "fields")
        for method in [
            "collection.list", "backend.list", "plugin.list", "session.hello", "daemon.ping", "daemon.status",
            "rpc.discover",
        ] {
            try expectError(connection, method, #"{"colour":1}"#, member: "colour")
        }
        try expectError(connection, "daemon.ping", #"{"\u0063olo\u0075r":1}"#, member: "colour")
    }

    @Test func anIllTypedMemberIsNamed() throws {
        let connection = try Daemon.shared.connect()
        for wrong in ["5", "null", "true", "[]", "{}", #"["c"]"#] {
            for method in Self.recordMethods {
                let item = Self.hasItem(method) ? #","item":1"# : ""
                try expectError(connection, method, #"{"collection":\#(wrong),"id":"a"\#(item)}"#, member: "collection")
                try expectError(connection, method, #"{"collection":"c","id":\#(wrong)\#(item)}"#, member: "id")
            }
            for method in ["record.update", "record.upsert", "record.delete"] {
                let item = Self.hasItem(method) ? #","item":1"# : ""
                let params = #"{"collection":"c","id":"a"\#(item),"ifRevision":\#(wrong)}"#
                try expectError(connection, method, params, member: "ifRevision")
            }
            try expectError(connection, "session.hello", #"{"client":\#(wrong)}"#, member: "client")
            try expectError(connection, "collection.describe", #"{"collection":\#(wrong)}"#, member: "collection")
        }
        for wrong in ["5", "null", "true", "{}", #""a""#, "[5]", "[null]", #"["a",["b"]]"#] {
            try expectError(connection, "record.readMany", #"{"collection":"c","ids":\#(wrong)}"#, member: "ids")
        }
        for wrong in [#""1""#, "null", "true", "[]", "{}", "1.5"] {
            try expectError(connection, "session.hello", #"{"protocol":\#(wrong)}"#, member: "protocol")
        }
    }

    @Test func mustBeAnObject() throws {
        let connection = try Daemon.shared.connect()
        for params in ["[]", #"["c","a"]"#, "5", #""c""#, "null", "true"] {
            for method in ["daemon.ping", "record.read", "record.create", "collection.list"] {
                #expect(try connection.call(method, params).error?.name == "invalid_params", "\(method) \(params)")
            }
        }
    }

    @Test func mayBeLeftOutWhereNothingIsRequired() throws {
        let connection = try Daemon.shared.connect()
        for method in [
            "collection.list", "backend.list", "plugin.list", "session.hello", "daemon.ping", "daemon.status",
            "rpc.discover",
        ] {
            #expect(try connection.call(method).result != nil, "\(method)")
            #expect(try connection.call(method, "{}").result != nil, "\(method)")
        }
        for method in Self.recordMethods + ["record.readMany"] {
            #expect(try connection.call(method).error?.name == "invalid_params", "\(method)")
        }
    }

    private static func hasItem(_ method: String) -> Bool {
        ["record.create", "record.update", "record.upsert"].contains(method)
    }

    private func expectError(
        _ connection: Connection, _ method: String, _ params: String?, member: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let error = try connection.call(method, params).error
        #expect(error?.code == -32602, "\(method) \(params ?? "")", sourceLocation: sourceLocation)
        #expect(
            error?.details?["member"]?.string == member, "\(method) \(params ?? "")", sourceLocation: sourceLocation)
    }
}
