import CRUDConfiguration
import Testing

/// A text that is not a valid configuration, and all of its diagnostics.
struct DiagnosticCase: Sendable, CustomTestStringConvertible {
    let yaml: String
    let expected: [String]

    init(_ yaml: String, _ expected: String...) {
        self.yaml = yaml
        self.expected = expected
    }

    var testDescription: String { yaml }
}

private let sections =
    "state_directory, socket, plugins, backends, collections, access, cache, loops, "
    + "busy_poll, limits, log"

private let levels = #""trace", "debug", "info", "notice", "warning", "error", "critical""#

@Suite struct ConfigurationDiagnosticTests {
    @Test func reportsFiveErrorsInOneRun() {
        let yaml = """
            socket:
              mode: rw
            backends:
              main:
                plugn: sqlite
            collections:
              clients: {backend: mian}
              orders: {backend: main, format: jsno}
            limits: {batch: 0}
            """
        #expect(
            diagnostics(yaml) == [
                #"2:9: expected an octal mode such as "0660", found "rw""#,
                #"5:5: unknown key "plugn", did you mean "plugin"?"#,
                #"7:22: unknown backend "mian", did you mean "main"?"#,
                #"8:35: unknown format "jsno", did you mean "json"?"#,
                #"9:17: expected 1 to 65536, found "0""#,
            ])
    }

    @Test(arguments: [
        ("", ["a", "b", "c"]), ("colections: {}\n", ["a", "b", "c"]), ("socket: {mode: rw}\n", ["a", "b", "c"]),
        ("plugins: {directories: [relative]}\n", ["c"]),
    ])
    func keepsTheBackendsWithoutAnError(section: String, expected: [String]) throws {
        let yaml = """
            backends:
              a: {plugin: x, options: {k: v}}
              bad1: {plugin: x, options: {k: *alias}}
              bad2: {plugin: x, options: {k: 1, k: 2}}
              bad3: {plugin: x, isolation: other}
              b:
                plugin: x
              bad4:
                plugin: x
                options: {<<: {}}
              c: {command: [/bin/x]}
              bad5: {plugin: x, optons: {}}

            """
        let error = #expect(throws: InvalidConfiguration.self) { try configuration(yaml + section) }
        #expect(error?.remainder?.backends.map(\.name) == expected)
    }

    @Test func decodesAMistypedKeyAsTheOneItSuggests() {
        let yaml = """
            bakends:
              main: {plugin: [sqlite]}
            collections:
              clients: {backnd: mian}
            """
        #expect(
            diagnostics(yaml) == [
                #"1:1: unknown key "bakends", did you mean "backends"?"#,
                "2:18: expected the name or the absolute path of a plugin, found a list",
                #"4:13: unknown key "backnd", did you mean "backend"?"#,
                #"4:21: unknown backend "mian", did you mean "main"?"#,
            ])
    }

    @Test(arguments: [
        DiagnosticCase("", #"1:1: the file is empty: at least "backends" is needed"#),
        DiagnosticCase("# nothing\n", #"1:1: the file is empty: at least "backends" is needed"#),
        DiagnosticCase("---\n", "2:1: expected a mapping (\(sections)), found nothing"),
        DiagnosticCase("- a\n", "1:1: expected a mapping (\(sections)), found a list"),
        DiagnosticCase("hello", "1:1: expected a mapping (\(sections)), found \"hello\""),
        DiagnosticCase("{}", #"1:1: the configuration lacks the key "backends""#),
        DiagnosticCase("\n  log: {level: info}\n", #"2:3: the configuration lacks the key "backends""#),
        DiagnosticCase("backends: {}", "1:11: at least one backend is needed"),
        DiagnosticCase("backends:", "1:10: expected a mapping of names to backends, found nothing"),
    ])
    func reportsWhatIsMissing(_ testCase: DiagnosticCase) {
        #expect(diagnostics(testCase.yaml) == testCase.expected)
    }

    @Test(arguments: [
        DiagnosticCase("a: [", "1:5: the [ at line 1, column 4 is not closed"),
        DiagnosticCase("a: {\n", "2:1: the { at line 1, column 4 is not closed"),
        DiagnosticCase("a: {b: [", "1:9: the [ at line 1, column 8 is not closed"),
        DiagnosticCase(
            "a: {b: 1\nc: 2\n", "2:2: the { at line 1, column 4 is not closed: a comma or } is missing before this"),
        DiagnosticCase(
            "a: [1, 2\nb: 3\n", "2:2: the [ at line 1, column 4 is not closed: a comma or ] is missing before this"),
        DiagnosticCase(
            "a: b: c",
            "1:5: a colon cannot stand here; check the indentation, and put text that has a colon in quotation marks"),
        DiagnosticCase("a: 1\n\tb: 2", "2:1: a tab cannot indent; use spaces"),
        DiagnosticCase("a:\n\tb: 2", "2:1: a tab cannot indent; use spaces"),
        DiagnosticCase("a:\n  b: 1\n\tc: 2", "3:1: a tab cannot indent; use spaces"),
        DiagnosticCase("a: \"x", "1:6: the quotation mark at line 1, column 4 is not closed"),
        DiagnosticCase(
            "collections:\n  *: {backend: main}",
            "2:3: text that begins with * needs quotation marks, such as \"*\""),
        DiagnosticCase("c: {*: {backend: main}}", "1:5: text that begins with * needs quotation marks, such as \"*\""),
        DiagnosticCase("a: & b", "1:4: text that begins with & needs quotation marks"),
        DiagnosticCase("a: @x", "1:4: text that begins with @ needs quotation marks"),
        DiagnosticCase("a: `x`", "1:4: text that begins with ` needs quotation marks"),
        DiagnosticCase(
            "a:\n  b: 1\n c: 2\n",
            "3:2: a key of the mapping that begins at line 1, column 1 is expected here; check the indentation"),
        DiagnosticCase("a: \u{1}", "1:4: unreadable character: control characters are not allowed"),
        DiagnosticCase("é: 1\né: \0", "2:4: unreadable character: control characters are not allowed"),
        DiagnosticCase("%YAML 9.9\n---\n", "1:1: found incompatible YAML document"),
    ])
    func reportsSyntax(_ testCase: DiagnosticCase) {
        #expect(diagnostics(testCase.yaml) == testCase.expected)
    }

    @Test func reportsInvalidUTF8() {
        #expect(
            diagnostics(Array("log: {}\né: ".utf8) + [0xFF]) == [
                "2:4: unreadable character: invalid leading UTF-8 octet"
            ])
        #expect(diagnostics(Array(minimal.utf8.flatMap { [$0, 0] })).count == 1)
    }

    @Test(arguments: [
        DiagnosticCase("log: &x {level: info}", "2:6: anchors are not supported"),
        DiagnosticCase("log: {level: &x info}", "2:14: anchors are not supported"),
        DiagnosticCase("log: *x", "2:6: aliases are not supported; text that begins with * needs quotation marks"),
        DiagnosticCase("*x : 1", "2:1: aliases are not supported; text that begins with * needs quotation marks"),
        DiagnosticCase("log: {level: !!str info}", "2:14: tags are not supported"),
        DiagnosticCase("limits: {batch: ! 1}", "2:17: tags are not supported"),
        DiagnosticCase("collections: !x {}", "2:14: tags are not supported"),
        DiagnosticCase("<<: {log: {}}", "2:1: merge keys are not supported"),
        DiagnosticCase("? [a]\n: 1", "2:3: a key must be a scalar, not a list"),
        DiagnosticCase(
            "? {a: &b 1}\n: {c: 1}", "2:3: a key must be a scalar, not a mapping", "2:7: anchors are not supported"),
        DiagnosticCase("---\nlog: {}", "2:1: a second document: the file may have only one"),
        DiagnosticCase("log: {}\nlog: {}", #"3:1: duplicate key "log", first at line 2, column 1"#),
        DiagnosticCase(
            "log: {}\n\"log\": {}\n'log': {}", #"3:1: duplicate key "log", first at line 2, column 1"#,
            #"4:1: duplicate key "log", first at line 2, column 1"#),
        DiagnosticCase(
            "collections:\n  a: {backend: main}\n  b: {backend: main}\n  a: {backend: main}",
            #"5:3: duplicate key "a", first at line 3, column 3"#),
    ])
    func reportsWhatYAMLHasAndWeDoNot(_ testCase: DiagnosticCase) {
        #expect(diagnostics(minimal + testCase.yaml) == testCase.expected)
    }

    @Test(arguments: [
        DiagnosticCase("state_directory: crudd", #"2:18: expected an absolute path, found "crudd""#),
        DiagnosticCase("state_directory: \"/a\\0b\"", #"2:18: expected an absolute path, found "/a\0b""#),
        DiagnosticCase("state_directory: [/a]", "2:18: expected an absolute path, found a list"),
        DiagnosticCase("socket: /run/x", #"2:9: expected a mapping (path, mode, group), found "/run/x""#),
        DiagnosticCase("socket: {paht: /run/x}", #"2:10: unknown key "paht", did you mean "path"?"#),
        DiagnosticCase("socket: {owner: x}", #"2:10: unknown key "owner", known are "path", "mode", "group""#),
        DiagnosticCase("socket: {path: run/x}", #"2:16: expected an absolute path, found "run/x""#),
        DiagnosticCase(
            "socket: {path: /\(String(repeating: "é", count: 54))}",
            "2:16: the path has 109 bytes, a socket's at most 107"),
        DiagnosticCase("socket: {mode: 0680}", #"2:16: expected an octal mode such as "0660", found "0680""#),
        DiagnosticCase("socket: {mode: 1777}", #"2:16: expected an octal mode such as "0660", found "1777""#),
        DiagnosticCase("socket: {mode: 0o660}", #"2:16: expected an octal mode such as "0660", found "0o660""#),
        DiagnosticCase("socket: {group: no-such-group}", #"2:17: there is no group "no-such-group" on this machine"#),
        DiagnosticCase(
            "socket: {group: 4294967295}", #"2:17: expected the id of a group, 0 to 4294967294, found "4294967295""#),
        DiagnosticCase("socket: {group: }", "2:17: expected the name or id of a group, found nothing"),
        DiagnosticCase("plugins: {directory: [/a]}", #"2:11: unknown key "directory", did you mean "directories"?"#),
        DiagnosticCase("plugins: {directories: /a}", #"2:24: expected a list of directories, found "/a""#),
        DiagnosticCase(
            "plugins: {directories: [a, /b, ../c]}",
            #"2:25: expected an absolute path, found "a""#, #"2:32: expected an absolute path, found "../c""#),
        DiagnosticCase("log: {level: verbose}", "2:14: unknown level \"verbose\", known are \(levels)"),
        DiagnosticCase("log: {level: INFO}", "2:14: unknown level \"INFO\", known are \(levels)"),
        DiagnosticCase("log: {level: warn}", #"2:14: unknown level "warn", did you mean "warning"?"#),
        DiagnosticCase("log:", "2:5: expected a mapping (level, slow), found nothing"),
        DiagnosticCase("loops: 0", #"2:8: expected auto or 1 to 16, found "0""#),
        DiagnosticCase("loops: 17", #"2:8: expected auto or 1 to 16, found "17""#),
        DiagnosticCase("loops: Auto", #"2:8: expected auto or 1 to 16, found "Auto""#),
        DiagnosticCase("loops: [2]", "2:8: expected auto or 1 to 16, found a list"),
        DiagnosticCase("loops:", "2:7: expected auto or 1 to 16, found nothing"),
        DiagnosticCase("cache: 64MiB", #"2:8: expected a mapping (bytes), found "64MiB""#),
        DiagnosticCase(
            "cache: {bytes: 64}",
            #"2:16: expected a size (a whole number with B, KiB, MiB or GiB), found "64""#),
        DiagnosticCase("cache: {bytes: 2048GiB}", #"2:16: expected 0B to 1024GiB, found "2048GiB""#),
        DiagnosticCase("busy_poll: 11ms", #"2:12: expected 0s to 10ms, found "11ms""#),
        DiagnosticCase("log: {slow: 2d}", #"2:13: expected 0s to 1d, found "2d""#),
        DiagnosticCase("loop: 2", #"2:1: unknown key "loop", did you mean "loops"?"#),
    ])
    func reportsTheSmallSections(_ testCase: DiagnosticCase) {
        #expect(diagnostics(minimal + testCase.yaml) == testCase.expected)
    }

    @Test(arguments: [
        DiagnosticCase(
            "frame_bytes: 16MB", #"2:24: expected a size (a whole number with B, KiB, MiB or GiB), found "16MB""#),
        DiagnosticCase(
            "frame_bytes: 16", #"2:24: expected a size (a whole number with B, KiB, MiB or GiB), found "16""#),
        DiagnosticCase(
            "frame_bytes: 1.5MiB", #"2:24: expected a size (a whole number with B, KiB, MiB or GiB), found "1.5MiB""#),
        DiagnosticCase("frame_bytes: 63KiB", #"2:24: expected 64KiB to 1GiB, found "63KiB""#),
        DiagnosticCase("frame_bytes: 1073741825B", #"2:24: expected 64KiB to 1GiB, found "1073741825B""#),
        DiagnosticCase(
            "frame_bytes: 99999999999999999999GiB", #"2:24: expected 64KiB to 1GiB, found "99999999999999999999GiB""#),
        DiagnosticCase("buffer_bytes: 511KiB", #"2:25: expected 512KiB to 1024GiB, found "511KiB""#),
        DiagnosticCase("item_bytes: 9MiB", "2:23: item_bytes (9MiB) may be at most half of frame_bytes (16MiB)"),
        DiagnosticCase("item_bytes: 0B", #"2:23: expected 1B to 512MiB, found "0B""#),
        DiagnosticCase("json_depth: 7", #"2:23: expected 8 to 1000, found "7""#),
        DiagnosticCase("json_depth: 1001", #"2:23: expected 8 to 1000, found "1001""#),
        DiagnosticCase("query_limit: 100001", #"2:24: expected 1 to 100000, found "100001""#),
        DiagnosticCase("sessions: 65537", #"2:21: expected 1 to 65536, found "65537""#),
        DiagnosticCase("sessions: 010", #"2:21: expected a whole number, found "010""#),
        DiagnosticCase("sessions: -1", #"2:21: expected a whole number, found "-1""#),
        DiagnosticCase("sessions: ten", #"2:21: expected a whole number, found "ten""#),
        DiagnosticCase("sessions: [1]", "2:21: expected a whole number, found a list"),
        DiagnosticCase("sessions: ", "2:21: expected a whole number, found nothing"),
        DiagnosticCase(
            "idle_timeout: 10", #"2:25: expected a duration (a whole number with us, ms, s, m, h or d), found "10""#),
        DiagnosticCase("idle_timeout: 8761h", #"2:25: expected 0s to 365d, found "8761h""#),
        DiagnosticCase("idle_timeout: 500us", #"2:25: expected 0us or at least 1ms, found "500us""#),
        DiagnosticCase("request_timeout: 0s", #"2:28: expected 1ms to 365d, found "0s""#),
        DiagnosticCase("session_byte: 1MiB", #"2:11: unknown key "session_byte", did you mean "session_bytes"?"#),
    ])
    func reportsLimits(_ testCase: DiagnosticCase) {
        #expect(diagnostics("\(minimal)limits: { \(testCase.yaml)}") == testCase.expected)
    }

    @Test(arguments: [
        DiagnosticCase(
            "{plugin: sqlite, command: [/bin/x]}", "1:32: a backend has either a plugin or a command, not both"),
        DiagnosticCase(
            "{command: [/bin/x], plugin: sqlite}", "1:35: a backend has either a plugin or a command, not both"),
        DiagnosticCase(
            "{plugin: sqlite, cache: 64MiB}", #"1:39: expected true or false, found "64MiB""#),
        DiagnosticCase("{options: {}}", #"1:15: backend "b" lacks the key "plugin" (or "command")"#),
        DiagnosticCase(
            "sqlite",
            "1:15: expected a mapping (plugin, command, isolation, cache, limits, sha256, options), "
                + #"found "sqlite""#
        ),
        DiagnosticCase(
            "{plugin: lib/sqlite}", #"1:24: expected the name or the absolute path of a plugin, found "lib/sqlite""#),
        DiagnosticCase("{plugin: \"\"}", #"1:24: expected the name or the absolute path of a plugin, found """#),
        DiagnosticCase("{plugin: /opt/x.so}", #"1:24: "/opt/x.so" lies in none of the plugin directories"#),
        DiagnosticCase(
            "{plugin: /usr/lib/crudd/plugins/../x.so}",
            #"1:24: "/usr/lib/crudd/plugins/../x.so" lies in none of the plugin directories"#),
        DiagnosticCase(
            "{plugin: /usr/lib/crudd/plugins2/x.so}",
            #"1:24: "/usr/lib/crudd/plugins2/x.so" lies in none of the plugin directories"#),
        DiagnosticCase("{command: /bin/x}", #"1:25: expected a list of words, an executable first, found "/bin/x""#),
        DiagnosticCase("{command: []}", "1:25: expected a list of words, an executable first, found a list"),
        DiagnosticCase(
            "{command: [x, [y]]}", #"1:26: expected an absolute path, found "x""#, "1:29: expected a word, found a list"
        ),
        DiagnosticCase("{command: [/bin/x], isolation: inline}", "1:46: a command is always a process of its own"),
        DiagnosticCase("{plugin: x, isolation: proces}", #"1:38: unknown isolation "proces", did you mean "process"?"#),
        DiagnosticCase(
            "{plugin: x, limits: {memory: 16MiB}}",
            #"1:27: limits need "isolation: process": they cannot be enforced on a plugin inside the daemon"#),
        DiagnosticCase(
            "{plugin: x, isolation: process, limits: {memory: 4MiB, cpu: 1}}",
            #"1:64: expected 16MiB to 1024GiB, found "4MiB""#,
            #"1:70: unknown key "cpu", known are "memory", "call_timeout""#),
        DiagnosticCase(
            "{plugin: x, isolation: process, limits: {timeout: 1s}}",
            #"1:56: unknown key "timeout", did you mean "call_timeout"?"#),
        DiagnosticCase("{plugin: x, sha256: 9f86d0}", #"1:35: expected 64 hexadecimal digits, found "9f86d0""#),
        DiagnosticCase("{plugin: x, options: }", "1:36: expected a mapping of options ({} for none), found nothing"),
        DiagnosticCase("{plugin: x, options: [a]}", "1:36: expected a mapping of options ({} for none), found a list"),
        DiagnosticCase(
            "{plugin: x, options: {a: .inf, b: [-.INF]}}",
            #"1:40: ".inf" is a number that JSON cannot represent"#,
            #"1:50: "-.INF" is a number that JSON cannot represent"#),
        DiagnosticCase("{plugin: x, options: {a: 1, a: 2}}", #"1:43: duplicate key "a", first at line 1, column 37"#),
        DiagnosticCase(
            "{plugin: x, options: {a: 0x10000000000000000}}", #"1:40: "0x10000000000000000" is over 64 bits"#),
    ])
    func reportsBackends(_ testCase: DiagnosticCase) {
        #expect(diagnostics("backends: {b: \(testCase.yaml)}") == testCase.expected)
    }

    @Test(arguments: [
        DiagnosticCase("\"\": {plugin: x}", "2:3: the name of a backend is empty"),
        DiagnosticCase("\"a\\nb\": {plugin: x}", "2:3: the name of a backend contains a control character"),
        DiagnosticCase(
            "\u{E9}: {plugin: x}\n  e\u{301}: {plugin: x}",
            "3:3: another backend's name differs from \"e\u{301}\" in encoding only"),
    ])
    func reportsNamesOfBackends(_ testCase: DiagnosticCase) {
        #expect(diagnostics("backends:\n  \(testCase.yaml)") == testCase.expected)
    }

    @Test(arguments: [
        DiagnosticCase("[a]", "2:14: expected a mapping of names or globs to collections, found a list"),
        DiagnosticCase(
            "{a: main}", #"2:18: expected a mapping (backend, format, indexes, move, changes), found "main""#),
        DiagnosticCase("{a: {}}", #"2:18: collection "a" lacks the key "backend""#),
        DiagnosticCase("{a: {backend: [main]}}", "2:28: expected the name of a backend, found a list"),
        DiagnosticCase("{a: {backend: other-one}}", #"2:28: unknown backend "other-one", known are "main""#),
        DiagnosticCase("{a: {backend: main, format: jsn}}", #"2:42: unknown format "jsn", did you mean "json"?"#),
        DiagnosticCase("{a: {backend: main, format: }}", "2:42: expected one of json, xml, plist, found nothing"),
        DiagnosticCase("{\"\": {backend: main}}", #"2:15: "": the name of a collection is empty"#),
        DiagnosticCase(#"{'a\': {backend: main}}"#, #"2:15: "a\": a "\" at the end escapes nothing"#),
        DiagnosticCase(#"{'a\b*': {backend: main}}"#, #"2:15: "a\b*": a "\" must be followed by "*", "?" or "\""#),
        DiagnosticCase(
            "{\"a\\tb\": {backend: main}}", #"2:15: "a\tb": the name of a collection contains a control character"#),
        DiagnosticCase(
            "{a: {backend: main, indexes: name}}", #"2:43: expected a list of property paths, found "name""#),
        DiagnosticCase("{a: {backend: main, move: yes}}", #"2:40: expected true or false, found "yes""#),
        DiagnosticCase(
            "{a: {backend: main, indexes: [a.b, c, a.b]}}", #"2:52: duplicate index "a.b""#),
        DiagnosticCase(
            "{a: {backend: main, indexes: [a..b]}}",
            #"2:44: expected a property path such as address.city ("\." for a dot), found "a..b""#),
        DiagnosticCase(
            #"{a: {backend: main, indexes: ['a\', 'a\x', '.a', 'a.', 'a\.b\\']}}"#,
            #"2:44: expected a property path such as address.city ("\." for a dot), found "a\""#,
            #"2:50: expected a property path such as address.city ("\." for a dot), found "a\x""#,
            #"2:57: expected a property path such as address.city ("\." for a dot), found ".a""#,
            #"2:63: expected a property path such as address.city ("\." for a dot), found "a.""#),
    ])
    func reportsCollections(_ testCase: DiagnosticCase) {
        #expect(diagnostics("\(minimal)collections: \(testCase.yaml)") == testCase.expected)
    }

    @Test func reportsNamesThatAreTooLong() {
        let name = String(repeating: "x", count: 129)
        for key in [name, "*" + name] {
            let message = diagnostics("\(minimal)collections: {\"\(key)\": {backend: main}}").first
            #expect(message?.hasPrefix("2:15: ") == true)
            #expect(message?.hasSuffix("the name of a collection is longer than 128 bytes") == true)
        }
        #expect(diagnostics("\(minimal)collections: {\"\(name.dropLast())\": {backend: main}}") == [])
    }

    @Test(arguments: [
        DiagnosticCase("{allow: [read]}", "2:9: expected a list of access rules, found a mapping"),
        DiagnosticCase("", "2:8: expected a list of access rules, found nothing"),
        DiagnosticCase("[{users: [root]}]", #"2:10: an access rule lacks the key "allow""#),
        DiagnosticCase("[{users: root, allow: []}]", #"2:18: expected a list of users, found "root""#),
        DiagnosticCase("[{users: [], allow: []}]", "2:18: an empty list matches no users; leave the key out for all"),
        DiagnosticCase(
            "[{users: [no-such-user], allow: []}]", #"2:19: there is no user "no-such-user" on this machine"#),
        DiagnosticCase(
            "[{groups: [no-such-group], allow: []}]", #"2:20: there is no group "no-such-group" on this machine"#),
        DiagnosticCase("[{groups: [-1], allow: []}]", #"2:20: there is no group "-1" on this machine"#),
        DiagnosticCase("[{user: [root], allow: []}]", #"2:11: unknown key "user", did you mean "users"?"#),
        DiagnosticCase("[{collections: ['a\\'], allow: []}]", #"2:25: "a\": a "\" at the end escapes nothing"#),
        DiagnosticCase("[{allow: [reed]}]", #"2:19: unknown permission "reed", did you mean "read"?"#),
        DiagnosticCase("[{allow: read}]", #"2:18: expected a list of read, write and admin, found "read""#),
        DiagnosticCase("[{allow: [read, [write]]}]", "2:25: expected read, write or admin, found a list"),
    ])
    func reportsAccess(_ testCase: DiagnosticCase) {
        #expect(diagnostics("\(minimal)access: \(testCase.yaml)") == testCase.expected)
    }

    @Test func reportsADirectoryOfTheEnvironmentThatIsRelative() {
        let error = #expect(throws: InvalidConfiguration.self) {
            try configuration(minimal, environment: ["STATE_DIRECTORY": "crudd"])
        }
        #expect(
            error?.description
                == "crudd.yaml:1:1: \"state_directory\" is not given, and $STATE_DIRECTORY is not an absolute path")
    }

    /// Eight times as many errors take eight times as long, and would take 64 times as long if every unknown name were
    /// compared with every known one. One of several rounds shows that, however busy the machine is.
    @Test func readsAFileFullOfErrorsInLinearTime() {
        #expect(
            (0..<4).contains { _ in
                let short = Self.timeToRead(errors: 500)
                return Self.timeToRead(errors: 4000) < short * 24
            })
    }

    private static func timeToRead(errors count: Int) -> Duration {
        let backends = (0..<count).map { "  b\($0): {plugin: x}\n" }.joined()
        let collections = (0..<count).map { "  c\($0): {backend: x\($0)}\n" }.joined()
        var reported = 0
        let elapsed = ContinuousClock().measure {
            reported = diagnostics("backends:\n\(backends)collections:\n\(collections)").count
        }
        #expect(reported == count)
        return elapsed
    }

    @Test func boundsNesting() {
        let inner = 61
        let legal = String(repeating: "[", count: inner) + String(repeating: "]", count: inner)
        #expect(diagnostics("backends: {b: {plugin: x, options: {}}}") == [])
        #expect(diagnostics("backends: {b: {plugin: x, options: {a: \(legal)}}}").count == 1)
        #expect(diagnostics("backends: {b: {plugin: x, options: {a: \(legal.dropFirst().dropLast())}}}") == [])
        #expect(diagnostics(String(repeating: "[", count: 100_000)) == ["1:65: nested deeper than 64 levels"])
        #expect(diagnostics(String(repeating: "- ", count: 100_000)) == ["1:129: nested deeper than 64 levels"])
    }
}
