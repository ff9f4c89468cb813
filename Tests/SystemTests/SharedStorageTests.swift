import CRUDTestSupport
import Glibc
import Testing

/// Two backends cannot have the same storage.
@Suite struct SharedStorageTests {
    private static let head = """
        state_directory: $DIRECTORY/state
        socket: {path: $DIRECTORY/crudd.sock}
        plugins: {directories: [$DIRECTORY/plugins]}
        collections: {"*": {backend: main}}
        backends:
        """

    private static let marked = MarkedText(
        """
        \(head)
          main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
          again: {plugin: sqlite, options: {path: ¶$DIRECTORY/main.sqlite, synchronous: normal}}
          child: {plugin: sqlite, isolation: process, options: {path: ¶$DIRECTORY/./linked//main.sqlite}}
          hard: {plugin: sqlite, options: {path: $DIRECTORY/hard.sqlite}}
          harder: {plugin: sqlite, options: {path: ¶$DIRECTORY/link.sqlite}}
          files: {plugin: filesystem, options: {directory: $DIRECTORY/files}}
          same: {plugin: filesystem, isolation: process, options: {fsync: false, directory: ¶$DIRECTORY/linked/files/}}
          suite: {plugin: userdefaults, isolation: process, options: {suite: one}}
          suite again: {plugin: userdefaults, isolation: process, options: {suite: ¶one}}
          other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
          memory: {plugin: memory}
          more memory: {plugin: memory}
          other files: {plugin: filesystem, options: {directory: $DIRECTORY/more}}
        """)

    private func installation(_ text: String) throws -> Installation {
        let installation = try Installation(text: text)
        #expect(symlink(installation.path, "\(installation.path)/linked") == 0)
        try Files.write("", to: "\(installation.path)/hard.sqlite")
        #expect(link("\(installation.path)/hard.sqlite", "\(installation.path)/link.sqlite") == 0)
        return installation
    }

    @Test func theSecondIsAnErrorOfTheConfiguration() throws {
        let installation = try installation(Self.marked.text)
        for outcome in [try installation.check(), try installation.startInVain()] {
            #expect(outcome.status == .exited(78))
            expect(outcome.errorLines)
        }
        #expect(!Files.exists("\(installation.path)/main.sqlite"))
    }

    private func expect(_ lines: [String]) {
        #expect(lines.count == Self.marked.positions.count, "\(lines)")
        let owners = ["main", "main", "hard", "files", "suite"]
        for (line, (position, owner)) in zip(lines, zip(Self.marked.positions, owners)) {
            #expect(line.contains("crudd.yaml:\(position): ") && line.contains("backend \(owner) already"), "\(line)")
        }
    }

    @Test func aReloadIsRefused() throws {
        let first = """
            \(Self.head)
              main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
            """
        let installation = try installation(Self.marked.text)
        try installation.configure(text: first)
        let daemon = try Daemon(on: installation)
        let connection = try daemon.connect()
        #expect(try connection.create("c", "a", "1").result != nil)
        try installation.configure(text: Self.marked.text)
        let error = try connection.call("daemon.reload").error
        #expect(error?.name == "invalid_configuration")
        #expect(error?.details?["line"]?.integer == 7)
        expect(error?.message.split(separator: ";").map(String.init).filter { $0.contains("already") } ?? [])
        #expect(try connection.item("c", "a") == "1")
        // Under another name it is no second one.
        try installation.configure(
            text: first.replacing("main:", with: "renamed:").replacing("backend: main", with: "backend: renamed"))
        #expect(try connection.call("daemon.reload", #"{"force":true}"#).error == nil)
        #expect(try connection.item("c", "a") == "1")
    }
}
