import CRUDTestSupport
import Glibc
import Testing

/// What crudd says of a configuration that it cannot use.
@Suite struct ConfigurationErrorTests {
    @Test func fiveErrorsAreFiveLines() throws {
        let marked = MarkedText(
            """
            state_directory: $DIRECTORY/state
            socket:
              path: $DIRECTORY/crudd.sock
              ¶mdoe: "0660"
            plugins:
              directories: [$DIRECTORY/plugins]
            backends:
              main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
            collections:
              clients: {backend: ¶mian}
              "*":
                backend: main
                ¶backend: main
            access:
              - {users: [root], allow: [read, ¶execute]}
            limits:
              json_depth: ¶5000
            """)
        let installation = try Installation(text: marked.text)
        for outcome in [try installation.check(), try installation.startInVain()] {
            #expect(outcome.status == .exited(78))
            let lines = outcome.errorLines
            #expect(lines.count == 5, "\(outcome.errors)")
            let words = ["mode", "main", "backend", "execute", ""]
            for (position, word) in zip(marked.positions, words) {
                let line = lines.first { $0.hasPrefix("\(installation.configurationFile):\(position): ") }
                #expect(line.map { word.isEmpty || $0.contains(word) } == true, "\(position) of\n\(outcome.errors)")
            }
        }
        #expect(!Files.exists(installation.socketPath))
        #expect(!Files.exists("\(installation.path)/main.sqlite"))
    }

    @Test func aWrongLimitHidesNoOther() throws {
        let marked = MarkedText(
            "limits: {frame_bytes: 1MiB, item_bytes: ¶1MiB, batch: ¶0}\n" + Configuration(requestTimeout: nil).text)
        let lines = try Installation(text: marked.text).check().errorLines
        #expect(lines.count == 2, "\(lines)")
        for position in marked.positions { #expect(lines.contains { $0.contains("crudd.yaml:\(position): ") }) }
    }

    /// An error in one key hides none in another, and options are checked by the plugin of every backend that has no
    /// error itself.
    @Test func errorsOfPluginsAreReportedInTheSameRun() throws {
        let marked = MarkedText(
            """
            state_directory: $DIRECTORY/state
            socket: {path: $DIRECTORY/crudd.sock}
            plugins: {directories: [$DIRECTORY/plugins]}
            backends:
              main: {plugin: sqlite, options: {mmap: ¶perhaps, pth: ¶$DIRECTORY/main.sqlite}}
              child: {plugin: sqlite, isolation: process, options: {path: ¶x, synchronous: ¶sometimes}}
              both: {plugin: sqlite, options: {path: /x, synchronous: ¶3, synchronus: ¶off}}
              absent: {plugin: ¶nowhere}
              own: {plugin: sqlite, isolation: ¶procss, options: {pth: x}}
              good: {plugin: memory}
            ¶colections:
              clients: {backend: ¶mian}
              "*": {backend: good}
            """)
        let words = [
            "mmap", "path", "path", "synchronous", "synchronous", "synchronus", "nowhere", "process", "collections",
            "main",
        ]
        let installation = try Installation(text: marked.text)
        for outcome in [try installation.check(), try installation.startInVain()] {
            #expect(outcome.status == .exited(78))
            let lines = outcome.errorLines.filter { $0.contains("crudd.yaml:") }
            #expect(lines.count == words.count, "\(lines)")
            for (line, (position, word)) in zip(lines, zip(marked.positions, words)) {
                #expect(line.contains("crudd.yaml:\(position): ") && line.contains(word), "\(line)")
            }
        }
        let daemon = try Daemon()
        try Files.copy(
            BuildProducts.path(of: "libmemory.so"), to: "\(daemon.installation.pluginDirectory)/memory.so", mode: 0o755)
        try daemon.installation.configure(text: marked.text)
        let reply = try daemon.connect().call("daemon.reload")
        #expect(reply.error?.name == "invalid_configuration")
        let message = try #require(reply.json["error"]?["message"]?.string)
        for position in marked.positions { #expect(message.contains("crudd.yaml:\(position): "), "\(message)") }
        #expect(try daemon.stop() == .exited(0))
    }

    /// What a backend cannot do with its options is refused before it is opened, beside the errors of options, and of
    /// the directories that plugins are looked for in.
    @Test(arguments: ["$DIRECTORY/plugins", "¶plugins, $DIRECTORY/plugins", "¶[], $DIRECTORY/plugins"])
    func changesThatOptionsExcludeAreErrors(directories: String) throws {
        let marked = MarkedText(
            """
            state_directory: $DIRECTORY/state
            socket: {path: $DIRECTORY/crudd.sock}
            plugins: {directories: [\(directories)]}
            backends:
              inline: {plugin: postgresql, options: {connection: "", shared: true, table_setup: S}}
              child:
                {plugin: postgresql, isolation: process,
                 options: {connection: "", shared: true, table_setup: S, readers: ¶0}}
              files: {plugin: filesystem, isolation: process, options: {fsnc: ¶false, directory: /x}}
              own: {plugin: postgresql, options: {connection: ""}}
              ours: {plugin: postgresql, options: {connection: "", shared: true}}
            collections:
              a: {backend: inline, changes: ¶true}
              b: {backend: child, changes: ¶{retention: 1d}}
              c: {backend: files, changes: ¶true}
              d: {backend: own, changes: true}
              e: {backend: ours, changes: true}
              "*": {backend: child}
            """)
        let outcome = try Installation(text: marked.text).check()
        #expect(outcome.status == .exited(78))
        let words = ["readers", "fsync", "with its options", "with its options", "cannot remember changes"]
        let lines = outcome.errorLines
        #expect(lines.count == marked.positions.count, "\(lines)")
        for (line, position) in zip(lines, marked.positions) { #expect(line.contains("crudd.yaml:\(position): ")) }
        for (line, word) in zip(lines.suffix(words.count), words) { #expect(line.contains(word), "\(line)") }
    }

    /// The rest is checked with placeholders in its stead, as often as it takes.
    @Test func aMissingOptionHidesNoOtherError() throws {
        let marked = MarkedText(
            """
            state_directory: $DIRECTORY/state
            socket: {path: $DIRECTORY/crudd.sock}
            plugins: {directories: [$DIRECTORY/plugins]}
            backends:
              shared: {plugin: postgresql, options: ¶{shared: true, table_setup: S, readers: ¶0}}
              child: {plugin: postgresql, isolation: process, options: ¶{shared: true, table_setup: S}}
              mistyped: {plugin: postgresql, options: {conection: ¶"", shared: true, table_setup: S}}
              wrong: {plugin: postgresql, options: {connection: ¶5, shared: true, table_setup: S}}
            collections:
              a: {backend: shared, changes: ¶true}
              b: {backend: child, changes: ¶true}
              c: {backend: mistyped, changes: ¶true}
              d: {backend: wrong, changes: ¶true}
              "*": {backend: shared}
            """)
        let outcome = try Installation(text: marked.text).check()
        #expect(outcome.status == .exited(78))
        let lines = outcome.errorLines
        #expect(lines.count == marked.positions.count, "\(lines)")
        for position in marked.positions {
            #expect(lines.count { $0.contains("crudd.yaml:\(position): ") } == 1, "\(position) of \(lines)")
        }
        #expect(lines.count { $0.contains("option \"connection\" is missing") } == 2, "\(lines)")
        #expect(lines.count { $0.contains("cannot remember changes with its options") } == 4, "\(lines)")
    }

    /// What may lie in a directory that has an error is not said to be missing.
    @Test func aPluginThatMayLieElsewhereIsNotMissing() throws {
        try expectError(Configuration(pluginDirectories: "¶plugins"), word: "")
        let text = Configuration().text.replacing("directories: [", with: "¶directorys: [")
        try expectError(marked: text, word: "directories")
    }

    @Test func eachErrorHasItsPosition() throws {
        let errors: [(section: WritableKeyPath<Configuration, String>, marked: String, word: String)] = [
            (\.socket, #"mode: ¶"rw-""#, ""), (\.socket, #"mode: ¶"0999""#, ""),
            (\.socket, "mode: ¶[0660]", ""), (\.socket, "group: ¶no-such-group-here", "no-such-group-here"),
            (\.socket, "¶grup: root", "group"), (\.socket, #"mode: ¶!!str "0660""#, ""),
            (\.socket, #"mode: ¶&m "0660""#, ""),
            (\.backends, "main: {plugin: sqlite, ¶option: {path: $DIRECTORY/main.sqlite}}", "options"),
            (\.backends, "main: {plugin: sqlite, isolation: ¶container, options: {path: /x}}", "container"),
            (\.backends, "main: {plugin: sqlite, options: {path: /x}, sha256: ¶0123}", ""),
            (\.backends, "main: ¶sqlite", ""),
            (\.backends, "main: {plugin: ¶[sqlite], options: {path: /x}}", ""),
            (\.collections, #""*": {backend: ¶nowhere}"#, "nowhere"),
            (\.collections, #""*": {backend: main, format: ¶csv}"#, "csv"),
            (\.collections, #""*": {backend: main, ¶indices: []}"#, "indexes"),
            (\.collections, #""*": {backend: main, indexes: ¶name}"#, ""),
            (\.collections, #""*": ¶main"#, ""),
        ]
        for error in errors {
            var configuration = Configuration()
            configuration[keyPath: error.section] = error.marked
            try expectError(configuration, word: error.word)
        }
    }

    @Test func eachLimitHasItsRange() throws {
        let limits = [
            "¶frame_byte: 32MiB", "frame_bytes: ¶63KiB", "frame_bytes: ¶2GiB", "frame_bytes: ¶16", "frame_bytes: ¶16MB",
            "frame_bytes: ¶-1MiB", "frame_bytes: ¶1.5MiB", "frame_bytes: ¶MiB", "frame_bytes: ¶[]",
            "item_bytes: ¶9MiB", "json_depth: ¶7", "json_depth: ¶1001", "json_depth: ¶deep", "query_limit: ¶0",
            "query_limit: ¶100001", "batch: ¶0", "batch: ¶65537", "sessions: ¶0", "sessions: ¶65537",
            "sessions_per_user: ¶0", "inflight_per_session: ¶0", "followers_per_session: ¶0",
            "sessions: ¶1e3", "sessions: ¶99999999999999999999",
            "idle_timeout: ¶10", "idle_timeout: ¶1w", "request_timeout: ¶-1s", "request_timeout: ¶{}",
        ]
        for limit in limits {
            try expectError(Configuration(limits: limit), word: limit.hasPrefix("¶") ? "frame_bytes" : "")
        }
    }

    @Test func eachAccessRuleIsChecked() throws {
        let rules = [
            ("- {users: [¶no-such-user-here], allow: [read]}", "no-such-user-here"),
            ("- {groups: [¶no-such-group-here], allow: [read]}", "no-such-group-here"),
            ("- {¶user: [root], allow: [read]}", "users"), ("- {users: ¶root, allow: [read]}", ""),
            ("- {users: [root], allow: [¶reed]}", "reed"), ("- ¶root", ""),
            ("- {users: [root], allow: ¶read}", ""),
        ]
        for (rule, word) in rules { try expectError(Configuration(access: rule), word: word) }
    }

    @Test func theRestOfTheFileIsChecked() throws {
        let good = Configuration().text
        let cases = [
            (good + "¶colections: {}\n", "collections"), (good + "¶socket: {}\n", "socket"),
            (good + "log: {level: ¶verbose}\n", "verbose"), (good + "log: {¶levle: info}\n", "level"),
            (good + "log: ¶&anchor {level: info}\n", ""), (good + "log: ¶*alias\n", ""),
            (good + "¶<<: {}\n", ""), (good + "¶---\nlog: {level: info}\n", ""),
            ("¶- socket\n", ""), ("¶socket\n", ""),
        ]
        for (text, word) in cases { try expectError(marked: text, word: word) }
    }

    @Test func missingKeysAreNamed() throws {
        let lines = Configuration().text.split(separator: "\n")
        let cases = [
            (lines.prefix { !$0.hasPrefix("backends:") } + [], "backends"),
            (lines.map { $0.hasPrefix("  main:") ? "  main: {options: {path: /x}}" : $0 }, "plugin"),
            (lines.map { $0.hasPrefix("  \"*\":") ? "  \"*\": {format: json}" : $0 }, "backend"),
        ]
        for (lines, key) in cases {
            let installation = try Installation(text: lines.joined(separator: "\n") + "\n")
            let outcome = try installation.check()
            #expect(outcome.status == .exited(78))
            #expect(outcome.errorLines.contains { $0.contains(key) }, "\(key): \(outcome.errors)")
            for line in outcome.errorLines { expectPosition(line, in: installation) }
        }
    }

    @Test(arguments: [
        "socket: {path: [}\n", "socket:\n\tpath: x\n", "a: 'b\n", "\u{0}", "a: b: c\n", "%YAML 9.9\n---\n{}\n", "",
    ])
    func whatIsNotYAMLIsAnError(text: String) throws {
        let installation = try Installation(text: text)
        let outcome = try installation.check()
        #expect(outcome.status == .exited(78))
        #expect(!outcome.errorLines.isEmpty)
        for line in outcome.errorLines { expectPosition(line, in: installation) }
    }

    @Test func bytesThatAreNotUTF8AreAnError() throws {
        let installation = try Installation()
        try Files.write(
            Array("log: {level: \"".utf8) + [0xFF, 0xFE] + Array("\"}\n".utf8), to: installation.configurationFile)
        let outcome = try installation.check()
        #expect(outcome.status == .exited(78))
        #expect(!outcome.errorLines.isEmpty)
    }

    @Test func aSocketPathThatIsTooLongIsAnError() throws {
        let path = "/" + String(repeating: "x", count: 107)
        let text = Configuration().text.replacing("$DIRECTORY/crudd.sock", with: "¶\(path)")
        try expectError(marked: text, word: "")
    }

    @Test func aFileThatIsNotThereIsAnError() throws {
        let crudd = try BuildProducts.path(of: "crudd")
        for arguments in [["--check", "/no/such/file.yaml"], ["--config", "/no/such/file.yaml"]] {
            let outcome = try Command.run(crudd, arguments)
            #expect(outcome.status != .exited(0))
            #expect(outcome.errors.contains("/no/such/file.yaml"))
        }
    }

    @Test func aGoodFilePassesAndTouchesNoStorage() throws {
        let installation = try Installation(
            Configuration(
                socket: "mode: 0640 # plain, and still octal",
                collections: "c: {backend: main, format: json, indexes: [a, b.c]}",
                access: "- {users: [root, 65534], groups: [0], collections: [c], allow: [read, write]}",
                limits: "frame_bytes: 1048576B\nitem_bytes: 512KiB\nidle_timeout: 1d\nrequest_timeout: 1500000us"))
        let outcome = try installation.check()
        #expect(outcome.status == .exited(0))
        #expect(outcome.errors.isEmpty)
        #expect(!Files.exists("\(installation.path)/main.sqlite"))
        #expect(!Files.exists(installation.socketPath))
        let daemon = try Daemon(on: installation)
        #expect(Files.status(daemon.socketPath).map { $0.st_mode & 0o7777 } == 0o640)
    }

    private func expectError(_ configuration: Configuration, word: String) throws {
        try expectError(marked: configuration.text, word: word)
    }

    /// Expects one error at the one mark, in a line that contains `word`.
    private func expectError(marked: String, word: String) throws {
        let marked = MarkedText(marked)
        let installation = try Installation(text: marked.text)
        let outcome = try installation.check()
        #expect(outcome.status == .exited(78), "\(marked.text)")
        let expected = "\(installation.configurationFile):\(marked.positions[0]): "
        let lines = outcome.errorLines
        #expect(lines.count == 1, "\(outcome.errors) for\n\(marked.text)")
        #expect(
            lines.contains { $0.hasPrefix(expected) && (word.isEmpty || $0.contains(word)) },
            "\(expected) … \(word) is not in \(outcome.errors)")
    }

    private func expectPosition(_ line: String, in installation: Installation) {
        let prefix = "\(installation.configurationFile):"
        #expect(line.hasPrefix(prefix), "\(line)")
        let numbers = line.dropFirst(prefix.count).split(separator: ":", maxSplits: 2)
        #expect(numbers.count == 3 && Int(numbers[0]) != nil && Int(numbers[1]) != nil, "\(line)")
    }
}
