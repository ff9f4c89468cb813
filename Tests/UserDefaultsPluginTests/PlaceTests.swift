import CRUDTestSupport
import Glibc
import Testing

/// Where the suite lies, and what else is there.
@Suite struct PlaceTests {
    private let suite: SuiteDaemon

    init() throws {
        suite = try SuiteDaemon()
    }

    @Test func touchesNothingElseInHome() throws {
        try Files.makeDirectory(suite.configuration)
        let others = ["other.plist", "com.example.test", "com.example.test.plist.bak", ".com.example.tes.plist"]
        for name in others { try Files.write("mine", to: "\(suite.configuration)/\(name)") }
        let connection = try suite.start()
        #expect(try connection.create("c", "a", "1").result != nil)
        #expect(try connection.delete("c", "a").result != nil)
        try suite.stop()
        for name in others { #expect(try Files.read("\(suite.configuration)/\(name)") == Array("mine".utf8)) }
        let ours = [
            "com.example.test.plist", ".com.example.test.plist.crudd-copy", ".com.example.test.plist.crudd-identity",
            ".com.example.test.plist.crudd-lock",
        ]
        #expect(try Files.names(in: suite.configuration).sorted() == (others + ours).sorted())
        #expect(try Files.names(in: suite.home) == [".config"])
        for name in ours {
            #expect(try #require(Files.status("\(suite.configuration)/\(name)")).st_mode == S_IFREG | 0o600, "\(name)")
        }
    }

    /// An application that changes its isolation finds its settings again.
    @Test func liesInTheSamePlaceInAChild() throws {
        var item = 0
        for isolation in ["inline", "process", "inline"] {
            let suite = try SuiteDaemon(home: suite.home, isolation: isolation)
            let connection = try suite.start()
            #expect(try connection.item("c", "a") == (item == 0 ? nil : "\(item)"))
            item += 1
            #expect(try connection.upsert("c", "a", "\(item)").result != nil)
            #expect(suite.log.contains("suite com.example.test lies in \(suite.path)"))
            try suite.stop()
        }
    }

    @Test(arguments: ["", "relative/home"])
    func saysThatThereIsNoHome(home: String) throws {
        let connection = try suite.start(home: home)
        #expect(try connection.read("c", "a").error?.name == "unavailable")
        #expect(suite.log.contains("HOME"))
        try suite.stop()
        #expect(!Files.exists("/.config/com.example.test.plist"))
    }

    @Test func saysThatHomeIsNotThere() throws {
        let connection = try suite.start(home: "\(suite.home)/none")
        #expect(try connection.read("c", "a").error?.name == "unavailable")
        #expect(!Files.exists("\(suite.home)/none"))
    }

    @Test func keepsASecondDaemonOut() throws {
        let connection = try suite.start()
        #expect(try connection.create("c", "a", "1").result != nil)
        let second = try SuiteDaemon(home: suite.home)
        #expect(try second.start().read("c", "a").error?.name == "unavailable")
        #expect(second.log.contains("locked"))
        #expect(try connection.item("c", "a") == "1")
    }

    /// Foundation would write through it.
    @Test func refusesALinkInThePlaceOfTheList() throws {
        try Files.makeDirectory(suite.configuration)
        try Files.write("mine", to: "\(suite.home)/target")
        guard symlink("\(suite.home)/target", suite.path) == 0 else { throw Failure.system("symlink") }
        let connection = try suite.start()
        #expect(try connection.create("c", "a", "1").error?.name == "unavailable")
        #expect(try Files.read("\(suite.home)/target") == Array("mine".utf8))
    }

    @Test func leavesAFileThatIsNoList() throws {
        try Files.makeDirectory(suite.configuration)
        try Files.write("mine", to: suite.path)
        let connection = try suite.start()
        #expect(try connection.create("c", "a", "1").error?.name == "unavailable")
        #expect(suite.log.contains("property list"))
        #expect(try Files.read(suite.path) == Array("mine".utf8))
    }
}
