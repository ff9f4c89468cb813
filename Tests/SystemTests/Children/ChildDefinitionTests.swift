import CRUDTestSupport
import Glibc
import Testing

/// What is wrong with the definition of a backend in a child is said at the start, as of one inside the daemon.
@Suite struct ChildDefinitionTests {
    @Test(arguments: [
        ("{plugin: ¶nothing, isolation: process}", "no plugin nothing"),
        ("{plugin: ¶broken, isolation: process}", "broken.so"), ("{plugin: ¶text, isolation: process}", "text.so"),
        ("{plugin: ¶sqlite, isolation: process, sha256: \(String(repeating: "0", count: 64))}", "SHA-256"),
        ("{plugin: sqlite, isolation: process, options: {¶pth: x, path: $DIRECTORY/a}}", "pth"),
        ("{plugin: sqlite, isolation: process, options: {path: $DIRECTORY/a, synchronous: ¶x}}", "synchronous"),
        ("{command: ¶[$DIRECTORY/nothing.py]}", "no executable"),
        ("{command: ¶[$DIRECTORY/plain.py]}", "cannot be executed"),
        ("{command: ¶[$DIRECTORY/open.py]}", "written by others"),
        ("{command: ¶[$DIRECTORY/interpreted]}", "cannot be executed"), ("{command: ¶[$DIRECTORY]}", "regular file"),
        ("{command: ¶[/usr/bin/python3], sha256: \(String(repeating: "0", count: 64))}", "SHA-256"),
        ("{command: [/usr/bin/python3, $DIRECTORY/store.py], options: {path: ¶x}}", "absolute path"),
        ("{command: [/usr/bin/python3, $DIRECTORY/store.py], options: {path: /x, ¶more: 1}}", "no option more"),
    ])
    func hasItsPlace(definition: String, word: String) throws {
        let marked = MarkedText(Configuration(backends: "main: \(definition)").text)
        let installation = try Installation(text: marked.text)
        let directory = installation.path
        try Files.write("", to: "\(directory)/plain.py", mode: 0o644)
        try Files.write("#!/usr/bin/python3\n", to: "\(directory)/open.py", mode: 0o777)
        try Files.write("#!/no/such/interpreter\n", to: "\(directory)/interpreted", mode: 0o755)
        try Files.write("no library", to: "\(directory)/plugins/text.so", mode: 0o755)
        try CompiledPlugin.compile(text: "int unrelated;", to: "\(directory)/plugins/broken.so")
        let line = marked.positions[0].split(separator: ":")[0]
        for outcome in [try installation.check(), try installation.startInVain()] {
            #expect(outcome.status == .exited(78), "\(outcome.errors)")
            let error = outcome.errorLines.last ?? ""
            #expect(error.hasPrefix("\(installation.configurationFile):\(line):"), "\(outcome.errors)")
            #expect(error.contains(word), "\(outcome.errors)")
        }
    }

    @Test func anExecutableIsPinnedByItsFirstWord() throws {
        let installation = try ChildDaemon.installation(["store"])
        let digest = try Command.run("sha256sum", ["\(installation.path)/store.py"]).output.prefix(64)
        try installation.configure(
            Configuration(
                backends: "main: {command: [$DIRECTORY/store.py], sha256: \(digest), options: {path: $DIRECTORY/x}}"))
        let daemon = try Daemon(on: installation)
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        // Another file in its place is not run.
        let pid = try #require(try ChildDaemon.status(of: "main", connection).pid)
        try Files.write(
            "#!/bin/sh\ntouch '\(installation.path)/ran'\n", to: "\(installation.path)/store.py", mode: 0o755)
        kill(pid, SIGKILL)
        let deadline = Deadline()
        while try ChildDaemon.status(of: "main", connection).lastError?.contains("SHA-256") != true {
            try #require(!deadline.hasPassed)
        }
        #expect(try connection.create("c", "b", "1").error?.name == "unavailable")
        #expect(!Files.exists("\(installation.path)/ran"))
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// A check that could not be made is told from one that found nothing, and from an error that a start would end
    /// with.
    @Test func aChildThatDiesWhileItIsCheckedIsNotAnErrorOfDefinition() throws {
        let installation = try ChildDaemon.installation(["inline", "unruly"], unruly: ", do: 'checkOptions:die'")
        let check = try installation.check()
        #expect(check.status == .exited(69))
        let line = check.errorLines.last ?? ""
        #expect(line.hasPrefix("\(installation.configurationFile):"), "\(check.errors)")
        #expect(line.contains("backend unruly could not be checked: child "), "\(check.errors)")
        #expect(line.hasSuffix(" ended with status 3"), "\(check.errors)")
        let daemon = try Daemon(on: installation)
        #expect(try daemon.connect().upsert("unruly", "a", "1").result != nil)
    }

    @Test func aProgramThatDiesBeforeItSaysAnythingIsDown() throws {
        let backends = """
            main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
            broken: {command: [$DIRECTORY/broken.sh]}
            """
        let installation = try Installation(
            Configuration(backends: backends, collections: "broken: {backend: broken}\n\"*\": {backend: main}"))
        try Files.write(
            "#!/bin/sh\necho 'no module named store' >&2\nexit 1\n", to: "\(installation.path)/broken.sh", mode: 0o755)
        let check = try installation.check()
        #expect(check.status == .exited(69))
        #expect(check.errors.contains("no module named store"), "\(check.errors)")
        #expect(check.errorLines.last?.contains("backend broken could not be checked") == true, "\(check.errors)")
        let daemon = try Daemon(on: installation)
        let connection = try daemon.connect()
        #expect(try connection.upsert("c", "a", "1").result != nil)
        #expect(try connection.upsert("broken", "a", "1").error?.name == "unavailable")
        #expect(try ChildDaemon.status(of: "broken", connection).state == "down")
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}
