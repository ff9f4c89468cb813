import CRUDTestSupport
import Glibc
import Testing

/// A reload that is refused changes nothing and says why.
@Suite struct ReloadRefusalTests {
    private static let main = "main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}"
    private static let other = "other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}"

    @Test(arguments: [
        "backends:\n  ¶- 1\n", "", "limits: {batch: ¶0}\n" + Configuration(requestTimeout: nil).text,
        "¶lmits: {batch: 1}\n" + Configuration(requestTimeout: nil).text,
        Configuration(collections: #""*": {backend: ¶mian}"#).text,
        Configuration(backends: "main: {plugin: ¶nothing}").text,
        Configuration(backends: "main: {plugin: sqlite, options: {path: $DIRECTORY/a, ¶pth: 1}}").text,
        Configuration(access: "- {users: [¶nobody-of-that-name], allow: [read]}").text,
    ])
    func anErrorHasItsPosition(marked: String) throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        let text = MarkedText(marked)
        try daemon.installation.configure(text: text.text)
        let error = try connection.reloadInVain()
        #expect(error.name == "invalid_configuration")
        #expect(error.details?["file"]?.string == daemon.installation.configurationFile)
        let place = (text.positions.first ?? "1:1").split(separator: ":").map(String.init)
        #expect(error.details?["line"]?.text == place[0], "\(error)")
        #expect(error.details?["column"]?.integer != nil)
        #expect(daemon.log.contains("\(daemon.installation.configurationFile):\(place[0]):"))
        #expect(try connection.item("c", "a") == "1")
        #expect(try connection.update("c", "a", "2").result != nil)
        try daemon.installation.configure(Configuration())
        #expect(try connection.reload().isEmpty)
    }

    /// What can be moved is told apart from what only force can leave behind.
    @Test func aCollectionThatIsMappedNowhereCannotBeMoved() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        try daemon.installation.configure(Configuration(collections: "other: {backend: main}"))
        for params in ["{}", #"{"move":true}"#] {
            let message = try #require(try connection.call("daemon.reload", params).error?.message)
            #expect(message.contains("mapped nowhere") && message.contains("--force") && !message.contains("--move"))
        }
        #expect(try connection.item("c", "a") == "1")
    }

    @Test func theBackendThatHasTheRecordsIsNeededForAMove() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        try daemon.installation.configure(
            Configuration(backends: Self.other, collections: "'*': {backend: other}"))
        let message = try #require(try connection.call("daemon.reload").error?.message)
        #expect(message.contains("; with backend main in the file again --move moves them, --force"), "\(message)")
    }

    @Test func whatCannotChangeIsSaidOnce() throws {
        let daemon = try Daemon(Configuration(loops: 1))
        let connection = try daemon.connect()
        for (loops, text) in [(3, "3"), (2, "2")] {
            try daemon.installation.configure(Configuration(loops: loops))
            let changes = try connection.reload().filter { $0.contains("loops") }
            #expect(changes == ["loops: stays 1 until the daemon is restarted, then \(text)"])
        }
    }

    @Test func aFileThatIsGoneIsAnError() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        Files.remove(daemon.installation.configurationFile)
        #expect(try connection.reloadInVain().name == "invalid_configuration")
        #expect(try connection.create("c", "a", "1").result != nil)
    }

    @Test(arguments: [
        (collections: "c: {backend: other}", place: "now mapped to backend other as json"),
        (collections: "d: {backend: main}", place: "now mapped nowhere"),
    ])
    func noCollectionOrphansItsRecords(collections: String, place: String) throws {
        let backends = "\(Self.main)\n\(Self.other)"
        let daemon = try Daemon(Configuration(backends: backends))
        let connection = try daemon.connect()
        for id in 0..<3 { #expect(try connection.create("c", "\(id)", "1").result != nil) }
        try daemon.installation.configure(Configuration(backends: backends, collections: collections))
        let error = try connection.reloadInVain()
        #expect(error.name == "invalid_configuration")
        #expect(daemon.log.contains("collection c has 3 records in backend main as json and is \(place)"))
        #expect(try connection.item("c", "0") == "1")

        #expect(try connection.reload(force: true).isEmpty == false)
        #expect(try connection.read("c", "0").error != nil)
        #expect(try connection.reload().isEmpty, "it is not asked about again")
        #expect(try daemon.stop() == .exited(0))
        let again = try daemon.restarted()
        try again.installation.configure(Configuration(backends: backends))
        if collections.hasPrefix("c") {
            // There might be newer ones in the other place.
            #expect(try again.connect().reloadInVain().name == "invalid_configuration")
            #expect(try again.connect().reload(force: true).isEmpty == false)
        } else {
            #expect(try again.connect().reload().isEmpty == false)
        }
        #expect(try again.connect().item("c", "0") == "1", "untouched in the old place")
    }

    @Test func noRecordsOfARemovedBackendAreOrphaned() throws {
        let daemon = try Daemon(
            Configuration(
                backends: "\(Self.main)\n\(Self.other)", collections: "c: {backend: other}\n\"*\": {backend: main}"))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        try daemon.installation.configure(Configuration(backends: Self.main))
        #expect(try connection.reloadInVain().name == "invalid_configuration")
        #expect(try connection.update("c", "a", "2").result != nil)
        #expect(try connection.item("c", "a") == "2")
        #expect(try connection.reload(force: true).contains("backend other: removed"))
        #expect(try connection.item("c", "a") == nil)
    }

    /// An option that is fine by itself and cannot be opened: found only after the old backend has been closed.
    @Test func whatCannotBeOpenedLeavesTheOldOne() throws {
        let backends = "\(Self.main)\n\(Self.other)"
        let daemon = try Daemon(
            Configuration(backends: backends, collections: "o: {backend: other}\n\"*\": {backend: main}"))
        let connection = try daemon.connect()
        for name in ["c", "o"] { #expect(try connection.create(name, "a", "1").result != nil) }
        try Files.makeDirectory("\(daemon.installation.path)/folder")
        let wrong = Configuration(
            backends: "main: {plugin: sqlite, options: {path: $DIRECTORY/folder}}\n"
                + "\(Self.other.dropLast(2)), synchronous: off}}",
            collections: "o: {backend: other}\n\"*\": {backend: main}")
        try daemon.installation.configure(wrong)
        let error = try connection.reloadInVain()
        #expect(["invalid_configuration", "unavailable"].contains(error.name), "\(error)")
        for name in ["c", "o"] {
            #expect(try connection.item(name, "a") == "1")
            #expect(try connection.update(name, "a", "2").result != nil)
        }
        #expect(try connection.backend("main")?["state"]?.string == "ready")
        #expect(try connection.backend("other")?["capabilities"]?.text.contains("durable") == true, "the old options")
        #expect(try daemon.stop() == .exited(0))
    }

    @Test(arguments: [4, 9])
    func aPluginThatRefusesLeavesTheOldOne(status: Int) throws {
        let daemon = try Daemon(on: Self.scripted("{}"))
        let connection = try daemon.connect()
        try daemon.installation.configure(
            Self.configuration(#"{open_failures: 1000, open_status: \#(status)}"#))
        let error = try connection.reloadInVain()
        #expect(error.name == (status == 9 ? "invalid_configuration" : "unavailable"))
        if status == 9 { #expect(error.details?["line"]?.integer == 9, "\(error)") }
        #expect(try connection.backend("main")?["state"]?.string == "ready")
        #expect(try connection.create("c", "b", "1").result != nil)
        #expect(try connection.item("c", "b") == "1")
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func aNewBackendThatIsNotAvailableNowIsTriedAgain() throws {
        let daemon = try Daemon(on: Self.scripted("{}"))
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        try daemon.installation.configure(
            Configuration(
                backends: """
                    main: {plugin: scripted, options: {}}
                    late: {plugin: scripted, options: {open_failures: 3, open_status: 4}}
                    """, collections: "late: {backend: late}\n\"*\": {backend: main}"))
        let changes = try connection.reload()
        #expect(changes.contains { $0.hasPrefix("backend late: not available now, will be retried") }, "\(changes)")
        let deadline = Deadline()
        while try connection.upsert("late", "a", "1").result == nil { try #require(!deadline.hasPassed) }
        #expect(try connection.item("c", "a") == "1")
    }

    private static func configuration(_ options: String) -> Configuration {
        Configuration(backends: "main:\n  plugin: scripted\n  options: \(options)")
    }

    private static func scripted(_ options: String) throws -> Installation {
        let installation = try Installation(configuration(options))
        try CompiledPlugin.compile("scripted.c", to: "\(installation.pluginDirectory)/scripted.so")
        return installation
    }
}
