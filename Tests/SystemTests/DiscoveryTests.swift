import CRUDTestSupport
import Testing

/// What `rpc.discover` says of the methods is what they do.
@Suite struct DiscoveryTests {
    private static let configuration = Configuration(
        backends: """
            main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
            kid: {plugin: sqlite, isolation: process, options: {path: $DIRECTORY/kid.sqlite}}
            """,
        collections: """
            c: {backend: main, indexes: [n], changes: true}
            k: {backend: kid}
            """)

    private static let calls = [
        ("record.create", #"{"collection":"c","id":"a","item":{"n":1},"ttl":60}"#),
        ("record.read", #"{"collection":"c","id":"a"}"#),
        ("record.read", #"{"collection":"c","id":"a","fields":[]}"#),
        ("record.update", #"{"collection":"c","id":"a","item":{"n":2}}"#),
        ("record.upsert", #"{"collection":"c","id":"b","item":{"n":2}}"#),
        ("record.patch", #"{"collection":"c","id":"a","patch":{"m":1},"ttl":null}"#),
        ("record.touch", #"{"collection":"c","id":"a","ttl":null}"#),
        ("record.exists", #"{"collection":"c","id":"a"}"#),
        ("record.readMany", #"{"collection":"c","ids":["a","z"]}"#),
        ("record.query", #"{"collection":"c","limit":1,"explain":true,"sort":[{"property":"n"}]}"#),
        ("record.query", #"{"collection":"c","fields":[]}"#),
        ("record.count", #"{"collection":"c","filter":true}"#),
        (
            "record.batch",
            #"{"operations":[{"op":"check","collection":"c","id":"z","ifRevision":null},"#
                + #"{"op":"upsert","collection":"c","id":"y","item":1},{"op":"delete","collection":"c","id":"z"}]}"#
        ),
        ("collection.list", "{}"), ("collection.describe", #"{"collection":"c"}"#),
        ("collection.describe", #"{"collection":"k","sizes":true}"#), ("collection.changes", #"{"collection":"c"}"#),
        ("collection.reindex", #"{"collection":"c"}"#), ("record.delete", #"{"collection":"c","id":"a"}"#),
        ("record.deleteMatching", #"{"collection":"c","prefix":"b"}"#), ("collection.changes", #"{"collection":"c"}"#),
        ("collection.drop", #"{"collection":"c"}"#), ("backend.list", "{}"), ("plugin.list", "{}"),
        ("session.hello", "{}"), ("daemon.ping", "{}"), ("daemon.status", "{}"), ("daemon.metrics", "{}"),
        ("daemon.slowLog", "{}"), ("session.list", "{}"), ("daemon.reload", "{}"),
        ("daemon.reload", #"{"dryRun":true}"#),
        ("daemon.configuration", "{}"), ("daemon.logLevel", #"{"level":"info"}"#), ("rpc.discover", "{}"),
        ("session.whoami", "{}"), ("access.check", #"{"method":"daemon.ping"}"#),
        ("request.cancel", #"{"id":17}"#), ("request.cancel", #"{"id":"x"}"#), ("request.cancel", #"{"id":null}"#),
        ("session.close", #"{"session":1000000}"#),
    ]

    @Test func everyResultIsAsDescribed() throws {
        let installation = try Installation(text: Self.configuration.text + "log: {slow: 1us}\n")
        let connection = try Daemon(on: installation).connect()
        let methods = try #require(try connection.call("rpc.discover").result?["methods"]?.elements)
        var called: Set<String> = []
        let backup = ("backend.backup", #"{"backend":"main","directory":"\#(installation.path)"}"#)
        for (name, params) in Self.calls + [backup] {
            let method = try #require(methods.first { $0["name"]?.string == name })
            let schema = try Schema(try #require(method["result"]?["schema"]))
            if let result = try connection.call(name, params).result {
                called.insert(name)
                #expect(try schema.violations(by: result) == [], "\(name): \(result.text)")
            }
            #expect(try parameters(of: method).violations(by: JSON(parsing: params)) == [], "\(name) \(params)")
        }
        // There is no such session.
        called.insert("session.close")
        #expect(Set(methods.compactMap { $0["name"]?.string }) == called)
    }

    @Test(arguments: [
        ("record.patch", #"{"collection":"c","id":"a","patch":{},"ttl":null}"#, true),
        ("record.touch", #"{"collection":"c","id":"a","ttl":null}"#, true),
        ("record.touch", #"{"collection":"c","id":"a","expiresAt":7}"#, true),
        ("record.create", #"{"collection":"c","id":"a","item":{},"ttl":null}"#, false),
        ("record.update", #"{"collection":"c","id":"a","item":{},"ttl":null}"#, false),
        ("record.upsert", #"{"collection":"c","id":"a","item":{},"ttl":null}"#, false),
        ("record.batch", #"{"operations":[{"op":"upsert","collection":"c","id":"a","item":1,"ttl":null}]}"#, false),
        ("record.batch", #"{"operations":[{"op":"patch","collection":"c","id":"a","patch":{},"ttl":null}]}"#, true),
        ("record.batch", #"{"operations":[{"op":"check","collection":"c","id":"a","ifRevision":null}]}"#, true),
        ("record.batch", #"{"operations":[{"op":"delete","collection":"c","id":"a","ifRevision":null}]}"#, false),
        ("record.batch", #"{"operations":[{"op":"create","collection":"c","id":"a"}]}"#, false),
        ("record.batch", #"{"operations":[{"op":"create","collection":"c","id":"a","item":1,"x":1}]}"#, false),
        ("record.batch", #"{"operations":[{"op":"read","collection":"c","id":"a"}]}"#, false),
    ])
    func parametersAreTakenAsDescribed(method: String, params: String, areTaken: Bool) throws {
        let connection = try Daemon(Self.configuration).connect()
        let methods = try #require(try connection.call("rpc.discover").result?["methods"]?.elements)
        let schema = try parameters(of: try #require(methods.first { $0["name"]?.string == method }))
        #expect(try schema.violations(by: JSON(parsing: params)).isEmpty == areTaken)
        #expect(try (connection.call(method, params).error?.name != "invalid_params") == areTaken)
    }

    @Test func anAtomicBatchMayBeUnsupported() throws {
        let connection = try Daemon(Self.configuration).connect()
        let methods = try connection.call("rpc.discover").result?["methods"]?.elements
        let batch = try #require(methods?.first { $0["name"]?.string == "record.batch" })
        let operation = #"{"op":"upsert","id":"a","item":1,"collection":"#
        let params = #"{"atomic":true,"operations":[\#(operation)"c"},\#(operation)"k"}]}"#
        let name = try #require(try connection.call("record.batch", params).error?.name)
        #expect(name == "unsupported")
        #expect(batch["errors"]?.elements?.contains { $0["$ref"]?.string == "#/components/errors/\(name)" } == true)
    }

    /// The parameters of a method as one object.
    private func parameters(of method: JSON) throws -> Schema {
        let parameters = try #require(method["params"]?.elements)
        let properties = parameters.map { #"\#($0["name"]?.text ?? ""):\#($0["schema"]?.text ?? "")"# }
        let required = parameters.filter { $0["required"]?.boolean == true }.compactMap { $0["name"]?.text }
        return try Schema(
            JSON(
                parsing: #"{"type":"object","properties":{\#(properties.joined(separator: ","))},"#
                    + #""required":[\#(required.joined(separator: ","))]}"#))
    }
}

/// A JSON Schema as far as the document uses it. Members that it does not describe are violations too.
private struct Schema {
    private let schema: JSON

    /// - Throws: for an object of which it says nothing.
    init(_ schema: JSON) throws {
        self.schema = schema
        if schema["type"]?.string == "object", schema["properties"] == nil, schema["additionalProperties"] == nil {
            throw Failure("\(schema.text) says nothing of the members")
        }
    }

    func violations(by value: JSON) throws -> [String] {
        if let schemas = schema["oneOf"]?.elements {
            let all = try schemas.map { try Schema($0).violations(by: value) }
            return all.contains([]) ? [] : ["\(value.text) is none of \(all)"]
        }
        if let constant = schema["const"], !constant.means(value) { return ["\(value.text) is not \(constant.text)"] }
        if let choices = schema["enum"]?.elements, !choices.contains(where: { $0.means(value) }) {
            return ["\(value.text) is none of \(schema.text)"]
        }
        let types = schema["type"].map { $0.elements?.compactMap(\.string) ?? [$0.string ?? ""] }
        if let types, !types.contains(where: { isType($0, of: value) }) {
            return ["\(value.text) is not of type \(types)"]
        }
        if let items = schema["items"], let elements = value.elements {
            let items = try Schema(items)
            return try elements.flatMap { try items.violations(by: $0) }
        }
        guard let members = value.members, types == ["object"] else { return [] }
        return try violations(by: members)
    }

    private func violations(by members: [JSON.Member]) throws -> [String] {
        let required = schema["required"]?.elements?.compactMap(\.string) ?? []
        let missing = required.filter { name in !members.contains { $0.name == name } }
        return try missing.map { "\($0) is missing" }
            + members.flatMap { member -> [String] in
                if let property = schema["properties"]?[member.name] {
                    return try Schema(property).violations(by: member.value)
                }
                guard let others = schema["additionalProperties"] else { return ["\(member.name) is not described"] }
                return others.boolean == true ? [] : try Schema(others).violations(by: member.value)
            }
    }

    private func isType(_ type: String, of value: JSON) -> Bool {
        switch value.content {
        case .null: type == "null"
        case .boolean: type == "boolean"
        case .number: type == "number" || type == "integer" && value.integer != nil
        case .string: type == "string"
        case .array: type == "array"
        case .object: type == "object"
        }
    }
}
