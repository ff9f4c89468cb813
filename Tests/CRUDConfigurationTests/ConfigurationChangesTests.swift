import CRUDConfiguration
import CRUDModel
import Testing

/// How a configuration differs from the one before, in words.
@Suite struct ConfigurationChangesTests {
    private func configuration(
        collections: String = #""*": {backend: main}"#, more: String = ""
    ) throws -> Configuration {
        let yaml = """
            state_directory: /var/lib/crudd
            backends: {main: {plugin: sqlite}, other: {plugin: sqlite}}
            collections: {\(collections)}
            \(more)
            """
        return try Configuration(yaml: Array(yaml.utf8), file: "crudd.yaml", environment: [:])
    }

    @Test func ofItselfAreNone() throws {
        let more = "access: [{users: [1], collections: [a], allow: [read]}]\nlimits: {batch: 7}"
        #expect(try configuration(more: more).changes(to: configuration(more: more)).isEmpty)
    }

    @Test(arguments: [
        ("plugins: {directories: [/a, /b]}", "plugins.directories: now /a, /b"), ("access: []", "access: added"),
        ("log: {level: debug}", "log.level: from info to debug"),
        ("cache: {bytes: 0B}", "cache.bytes: from 64MiB to 0B"),
        ("busy_poll: 0us", "busy_poll: from 200us to 0s"),
        ("log: {slow: 1s}", "log.slow: from 100ms to 1s"),
        ("limits: {frame_bytes: 32MiB}", "limits.frame_bytes: from 16MiB to 32MiB"),
        ("limits: {item_bytes: 1000B}", "limits.item_bytes: from 4MiB to 1000B"),
        ("limits: {json_depth: 9}", "limits.json_depth: from 128 to 9"),
        ("limits: {query_limit: 9}", "limits.query_limit: from 10000 to 9"),
        ("limits: {batch: 9}", "limits.batch: from 1000 to 9"),
        ("limits: {collections: 9}", "limits.collections: from 10000 to 9"),
        ("limits: {sessions: 9}", "limits.sessions: from 1024 to 9"),
        ("limits: {sessions_per_user: 9}", "limits.sessions_per_user: from 256 to 9"),
        ("limits: {inflight_per_session: 9}", "limits.inflight_per_session: from 256 to 9"),
        ("limits: {followers_per_session: 9}", "limits.followers_per_session: from 1024 to 9"),
        ("limits: {session_bytes: 1GiB}", "limits.session_bytes: from 64MiB to 1GiB"),
        ("limits: {buffer_bytes: 1GiB}", "limits.buffer_bytes: from 512MiB to 1GiB"),
        ("limits: {idle_timeout: 90s}", "limits.idle_timeout: from 0s to 90s"),
        ("limits: {request_timeout: 1500ms}", "limits.request_timeout: from 30s to 1500ms"),
    ])
    func areEachALine(more: String, line: String) throws {
        #expect(try configuration().changes(to: configuration(more: more)) == [line])
    }

    @Test(arguments: [
        ("[{users: [1], allow: [read]}]", "[{users: [1], allow: [write]}]"),
        ("[{users: [1], allow: [read]}]", "[{groups: [1], allow: [read]}]"),
        ("[{users: [1], allow: [read]}]", "[{users: [1, 2], allow: [read]}]"),
        ("[{collections: [a], allow: [read]}]", "[{collections: ['a*'], allow: [read]}]"),
        ("[{users: [1], allow: []}, {allow: [read]}]", "[{allow: [read]}, {users: [1], allow: []}]"),
    ])
    func ofAccessAreOne(old: String, new: String) throws {
        #expect(
            try configuration(more: "access: \(old)").changes(to: configuration(more: "access: \(new)"))
                == ["access: changed"])
        #expect(try configuration(more: "access: \(old)").changes(to: configuration()) == ["access: removed"])
    }

    /// What two sections `collections` differ in.
    struct Move: Sendable {
        var old = "a: {backend: main}"
        var new: String
        var changes: [String]
    }

    @Test(arguments: [
        Move(
            new: "b: {backend: other, format: xml}",
            changes: ["collection a: removed", "collection b: added, in backend other as xml"]),
        Move(new: "a: {backend: other}", changes: ["collection a: from backend main to backend other"]),
        Move(
            new: "a: {backend: main, format: plist}", changes: ["collection a: from format json to format plist"]),
        Move(new: "a: {backend: main, indexes: [x]}", changes: ["collection a: indexes changed"]),
        Move(
            old: #""a*": {backend: main}, "*b": {backend: main}"#,
            new: #""*b": {backend: main}, "a*": {backend: main}"#,
            changes: ["collections: in another order"]),
    ])
    func ofCollectionsSayWhereTheyGo(move: Move) throws {
        let (old, new) = (try configuration(collections: move.old), try configuration(collections: move.new))
        #expect(old.changes(to: new) == move.changes)
        #expect(!old.collections.storesLike(new.collections) && new.collections.storesLike(new.collections))
    }

    @Test(arguments: [
        ("{plugin: b}", ["plugin"]), ("{plugin: a, options: {x: 1}}", ["options"]),
        ("{plugin: a, isolation: process}", ["isolation"]),
        ("{plugin: a, isolation: process, limits: {memory: 16MiB}}", ["isolation", "limits"]),
        ("{plugin: a, sha256: \(String(repeating: "0", count: 64))}", ["sha256"]),
        ("{command: [/bin/a]}", ["command", "isolation"]), ("{plugin: a, options: {}}", []),
    ])
    func ofABackendAreItsKeys(definition: String, keys: [String]) throws {
        func backend(_ definition: String) throws -> BackendConfiguration {
            let yaml = "backends: {main: \(definition)}"
            return try Configuration(yaml: Array(yaml.utf8), file: "crudd.yaml", environment: [:]).backends[0]
        }
        #expect(try backend("{plugin: a}").changedKeys(in: backend(definition)) == keys)
    }
}
