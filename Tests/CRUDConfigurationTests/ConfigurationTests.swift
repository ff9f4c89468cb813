import CRUDConfiguration
import CRUDModel
import Glibc
import Testing

@Suite struct ConfigurationTests {
    @Test func readsTheDocumentedSample() throws {
        let configuration = try configuration(sample)
        #expect(configuration.file == "crudd.yaml")
        #expect(configuration.stateDirectory == "/var/lib/crudd")
        #expect(configuration.socket.path == "/run/crudd/crudd.sock")
        #expect(configuration.socket.mode == 0o660)
        #expect(configuration.socket.group?.name == "daemon")
        #expect(configuration.socket.group?.id == getgrnam("daemon")?.pointee.gr_gid)
        #expect(configuration.pluginDirectories == ["/usr/lib/crudd/plugins"])
        #expect(configuration.limits == Configuration.Limits())
        #expect(configuration.loops == nil)
        #expect(configuration.cacheBytes == 64 << 20)
        #expect(configuration.busyPoll == .microseconds(200))
        #expect(configuration.logLevel == .info)
        #expect(configuration.slowRequest == .milliseconds(100))

        try #require(configuration.backends.map(\.name) == ["main", "files", "legacy"])
        let main = configuration.backends[0]
        #expect(main.implementation == .plugin("sqlite"))
        #expect(main.isolation == .inline)
        #expect(main.sha256 == nil)
        #expect(String(decoding: main.options, as: UTF8.self) == #"{"path":"/var/lib/crudd/main.sqlite"}"#)
        #expect(main.position == SourcePosition(line: 9, column: 3))
        #expect(main.implementationPosition == SourcePosition(line: 10, column: 13))
        let files = configuration.backends[1]
        #expect(files.isolation == .process)
        #expect(files.limits.memoryBytes == 256 << 20)
        #expect(files.limits.callTimeout == .seconds(10))
        #expect(files.sha256 == "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
        let legacy = configuration.backends[2]
        #expect(legacy.implementation == .command(["/usr/lib/crudd/plugins/my-plugin.py", "--flag"]))
        #expect(legacy.isolation == .process)
        #expect(legacy.options == Array("{}".utf8))

        let rules = configuration.collections.rules
        #expect(rules.map(\.pattern.text) == ["clients", "Clients Database", "*"])
        #expect(rules.map(\.pattern.isGlob) == [false, false, true])
        #expect(rules.map(\.backend) == ["main", "files", "main"])
        #expect(rules.map(\.format) == [.json, .xml, .json])
        #expect(rules.map(\.indexes) == [["name", "address.city"], [], []])
        #expect(rules[1].position == SourcePosition(line: 23, column: 3))

        let access = try #require(configuration.access.rules)
        #expect(access[0].users == [try #require(getpwnam("daemon")?.pointee.pw_uid), 1000])
        #expect(access[0].groups == [try #require(getgrnam("bin")?.pointee.gr_gid)])
        #expect(access[0].collections?.map(\.text) == ["clients"])
        #expect(access[0].allow == [.read, .write])
        #expect(access[1].users == nil)
        #expect(access[1].groups == [0])
        #expect(access[1].collections == nil)
        #expect(access[1].allow == .all)
    }

    @Test func fillsInDefaults() throws {
        let configuration = try configuration(minimal)
        #expect(configuration.stateDirectory == "/var/lib/crudd")
        #expect(configuration.socket == Configuration.Socket())
        #expect(configuration.pluginDirectories == ["/usr/lib/crudd/plugins"])
        #expect(configuration.collections.rules.isEmpty)
        #expect(configuration.access.rules == nil)
        #expect(configuration.limits == Configuration.Limits())
        #expect(configuration.backends[0].options == Array("{}".utf8))
    }

    @Test(arguments: [
        ("/srv/state", "/srv/state"), ("/srv/first:/srv/second", "/srv/first"),
    ])
    func takesStateDirectoryFromEnvironment(variable: String, expected: String) throws {
        let environment = ["STATE_DIRECTORY": variable]
        #expect(try configuration(minimal, environment: environment).stateDirectory == expected)
        let explicit = try configuration(minimal + "state_directory: /given", environment: environment)
        #expect(explicit.stateDirectory == "/given")
    }

    @Test func keyDecidesTheTypeOfAScalar() throws {
        let configuration = try configuration(
            """
            socket: {mode: 600}
            backends:
              007: {plugin: null}
              yes: {command: [/bin/true, 1.50, "", ~]}
            collections:
              12: {backend: 007}
              null: {backend: "yes"}
              "a": {backend: yes, format: "json", move: "true"}
            loops: "3"
            limits: {batch: "12", frame_bytes: '64KiB', item_bytes: 32768B, idle_timeout: 1500ms, request_timeout: 2h}
            """)
        #expect(configuration.socket.mode == 0o600)
        #expect(configuration.backends.map(\.name) == ["007", "yes"])
        #expect(configuration.backends[0].implementation == .plugin("null"))
        #expect(configuration.backends[1].implementation == .command(["/bin/true", "1.50", "", "~"]))
        #expect(configuration.collections.rules.map(\.pattern.text) == ["12", "null", "a"])
        #expect(configuration.collections.rules.map(\.backend) == ["007", "yes", "yes"])
        #expect(configuration.collections.rules.map(\.moves) == [false, false, true])
        #expect(configuration.loops == 3)
        #expect(configuration.limits.batch == 12)
        #expect(configuration.limits.frameBytes == 65_536)
        #expect(configuration.limits.itemBytes == 32_768)
        #expect(configuration.limits.idleTimeout == .milliseconds(1500))
        #expect(configuration.limits.requestTimeout == .seconds(7200))
    }

    @Test func itemsAreAtMostHalfOfASmallFrameByDefault() throws {
        let configuration = try configuration(minimal + "limits: {frame_bytes: 1MiB}")
        #expect(configuration.limits.itemBytes == 512 << 10)
    }

    @Test func acceptsByteOrderMarkDirectiveAndDocumentMarks() throws {
        #expect(try configuration("\u{FEFF}%YAML 1.2\n---\n\(minimal)...\n").backends.count == 1)
        #expect(diagnostics("\u{FEFF}bakends: {}\n").first?.hasPrefix("1:1: ") == true)
    }

    @Test func acceptsPluginPathsBeneathItsDirectories() throws {
        let configuration = try configuration(
            """
            plugins: {directories: [/opt/plugins/, /usr//lib/./crudd]}
            backends:
              a: {plugin: /opt/plugins/a.so}
              b: {plugin: /usr/lib/crudd/extra/b.so}
            """)
        #expect(
            configuration.backends.map(\.implementation) == [
                .plugin("/opt/plugins/a.so"), .plugin("/usr/lib/crudd/extra/b.so"),
            ])
    }
}

@Suite struct ConfigurationFileTests {
    @Test func loadsAFileAndNamesItInDiagnostics() throws {
        var template = Array("/tmp/crudd-configuration-XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        try #require(descriptor >= 0)
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer {
            close(descriptor)
            unlink(path)
        }
        try #require(write(descriptor, minimal, minimal.utf8.count) == minimal.utf8.count)
        #expect(try Configuration.load(path: path, environment: [:]).file == path)

        let typo = "lgo: {}\n"
        try #require(write(descriptor, typo, typo.utf8.count) == typo.utf8.count)
        let error = #expect(throws: InvalidConfiguration.self) { try Configuration.load(path: path, environment: [:]) }
        #expect(error?.description == #"\#(path):2:1: unknown key "lgo", did you mean "log"?"#)

        // A sparse file takes no disk space, but is too long.
        try #require(ftruncate(descriptor, Configuration.maximumFileBytes + 1) == 0)
        let long = #expect(throws: InvalidConfiguration.self) { try Configuration.load(path: path, environment: [:]) }
        #expect(long?.description == "\(path):1:1: the file is longer than 4MiB")
    }

    @Test(arguments: [
        ("/nonexistent/crudd.yaml", "cannot be opened: No such file or directory"),
        ("/", "cannot be read: Is a directory"),
    ])
    func reportsAFileThatCannotBeRead(path: String, message: String) {
        let error = #expect(throws: InvalidConfiguration.self) { try Configuration.load(path: path, environment: [:]) }
        #expect(error?.description == "\(path):1:1: \(message)")
    }
}
