import CRUDModel
import CRUDTestSupport
import Glibc
import Testing

@testable import CRUDPluginHost

/// Only a file that nobody else can have written is a plugin.
@Suite struct PluginFileTests {
    /// Holds `plugins/good.so`, and `elsewhere.so` beside the one directory where plugins are looked for.
    private let directory: TemporaryDirectory
    private var plugins: String { "\(directory.path)/plugins" }

    init() throws {
        directory = try TemporaryDirectory()
        try Files.makeDirectory("\(directory.path)/plugins")
        try Files.write("good", to: "\(directory.path)/plugins/good.so")
        try Files.write("elsewhere", to: "\(directory.path)/elsewhere.so")
    }

    private func find(_ name: String, sha256: String? = nil) throws -> String {
        try PluginFile(named: name, in: [plugins], sha256: sha256).path
    }

    /// The error that finding a plugin comes to.
    private func error(_ name: String, sha256: String? = nil) throws -> String {
        try #require(throws: PluginLoadingError.self) { _ = try find(name, sha256: sha256) }.description
    }

    @Test func isFoundByNameOrPath() throws {
        let path = "\(plugins)/good.so"
        #expect(try find("good") == path)
        #expect(try find(path) == path)
        #expect(try find("\(plugins)/../plugins/./good.so") == path)
        #expect(try PluginFile(named: "good", in: ["/nowhere", directory.path, plugins], sha256: nil).path == path)
    }

    @Test func theFirstDirectoryThatHasItCounts() throws {
        try Files.write("other", to: "\(directory.path)/good.so")
        #expect(try PluginFile(named: "good", in: [directory.path, plugins], sha256: nil).path.hasSuffix("/good.so"))
        #expect(
            try PluginFile(named: "good", in: [directory.path, plugins], sha256: nil).path
                == "\(directory.path)/good.so")
    }

    @Test func isNotFound() throws {
        #expect(try error("bad") == "there is no plugin bad: looked for \(plugins)/bad.so")
        #expect(try error("\(plugins)/bad.so").contains("there is no plugin"))
        #expect(try error("").contains("there is no plugin"))
        #expect(try error("goood") == "there is no plugin goood: looked for \(plugins)/goood.so; did you mean good?")
        let missing = #expect(throws: PluginLoadingError.self) {
            try PluginFile(named: "good", in: ["/nowhere"], sha256: nil)
        }
        let text = missing.map { "\($0)" } ?? ""
        #expect(text.hasSuffix("looked for /nowhere/good.so; there is no directory /nowhere"), "\(text)")
        #expect(throws: PluginLoadingError.self) { try PluginFile(named: "good", in: [], sha256: nil) }
    }

    @Test func mustLieInAPluginDirectory() throws {
        #expect(try error("../elsewhere").contains("none of the plugin directories"))
        #expect(try error("\(directory.path)/elsewhere.so").contains("none of the plugin directories"))
        #expect(try error("\(plugins)/../elsewhere.so").contains("none of the plugin directories"))
        // A directory whose name begins alike is another one.
        try Files.makeDirectory("\(plugins)-old")
        try Files.write("old", to: "\(plugins)-old/good.so")
        #expect(try error("\(plugins)-old/good.so").contains("none of the plugin directories"))
    }

    @Test func aLinkCountsForWhatItPointsAt() throws {
        #expect(symlink("\(directory.path)/elsewhere.so", "\(plugins)/link.so") == 0)
        #expect(try error("link").contains("none of the plugin directories"))
        #expect(symlink("good.so", "\(plugins)/alias.so") == 0)
        #expect(try find("alias") == "\(plugins)/good.so")
        #expect(symlink("circle.so", "\(plugins)/circle.so") == 0)
        #expect(try error("circle").contains("there is no plugin"))
        #expect(symlink(plugins, "\(directory.path)/entrance") == 0)
        #expect(
            try PluginFile(named: "good", in: ["\(directory.path)/entrance"], sha256: nil).path == "\(plugins)/good.so")
    }

    @Test(arguments: [0o664, 0o646, 0o622, 0o777] as [mode_t])
    func othersMustNotBeAbleToWriteIt(mode: mode_t) throws {
        try Files.setMode(mode, of: "\(plugins)/good.so")
        #expect(try error("good") == "\(plugins)/good.so can be written by others: chmod go-w")
    }

    @Test(arguments: [0o775, 0o757, 0o777, 0o1777] as [mode_t])
    func norTheFoldersAboveIt(mode: mode_t) throws {
        try Files.setMode(mode, of: plugins)
        #expect(try error("good") == "\(plugins) can be written by others: chmod go-w")
        try Files.setMode(0o755, of: plugins)
        try Files.makeDirectory("\(plugins)/deep")
        try Files.makeDirectory("\(plugins)/deep/deeper")
        try Files.write("deep", to: "\(plugins)/deep/deeper/good.so")
        #expect(try find("deep/deeper/good") == "\(plugins)/deep/deeper/good.so")
        try Files.setMode(mode, of: "\(plugins)/deep")
        #expect(try error("deep/deeper/good") == "\(plugins)/deep can be written by others: chmod go-w")
    }

    /// From `/` on, where it is found and on the way to it.
    @Test(arguments: [0o775, 0o757, 0o777] as [mode_t])
    func norAnyOtherOnTheWay(mode: mode_t) throws {
        try Files.makeDirectory("\(directory.path)/shared")
        #expect(symlink(plugins, "\(directory.path)/shared/link") == 0)
        let link = { try PluginFile(named: "good", in: ["\(directory.path)/shared/link"], sha256: nil).path }
        #expect(try link() == "\(plugins)/good.so")
        try Files.setMode(mode, of: "\(directory.path)/shared")
        let error = try #require(throws: PluginLoadingError.self) { _ = try link() }
        #expect(error.description == "\(directory.path)/shared can be written by others: chmod go-w")
        try Files.setMode(mode, of: directory.path)
        #expect(try self.error("good") == "\(directory.path) can be written by others: chmod go-w")
        #expect(try self.error("\(plugins)/good.so") == "\(directory.path) can be written by others: chmod go-w")
        try Files.setMode(0o1777, of: directory.path)
        #expect(try find("good") == "\(plugins)/good.so", "nobody can replace what is in a sticky directory")
    }

    @Test func anExecutableMayLieAnywhere() throws {
        let path = "\(directory.path)/program"
        try Files.write("#!/bin/sh\n", to: path, mode: 0o755)
        #expect(try PluginFile(executable: path, sha256: SHA256.digest("#!/bin/sh\n".utf8)).path == path)
        try Files.setMode(0o1777, of: directory.path)
        #expect(try PluginFile(executable: path, sha256: nil).path == path)
        try Files.setMode(0o777, of: directory.path)
        #expect(throws: PluginLoadingError.self) { try PluginFile(executable: path, sha256: nil) }
    }

    @Test(.enabled(if: geteuid() == 0, "needs root to give a link away"))
    func aLinkOfSomebodyElseIsNotFollowed() throws {
        try Files.setMode(0o1777, of: directory.path)
        let link = "\(directory.path)/program"
        #expect(symlink("/bin/sh", link) == 0)
        #expect(throws: Never.self) { try PluginFile(executable: link, sha256: nil) }
        #expect(lchown(link, 12345, 0) == 0)
        let error = try #require(throws: PluginLoadingError.self) { try PluginFile(executable: link, sha256: nil) }
        #expect(error.description.contains("\(link) belongs to user 12345"))
    }

    /// What matters is the user whose daemon it is: here the one of a program that checks plugins.
    @Test(.enabled(if: geteuid() == 0, "needs root to be another user"), arguments: [0, 12345, 54321] as [uid_t])
    func anotherUsersFileIsRefused(owner: uid_t) throws {
        try CompiledPlugin.compile(text: "int something;", to: "\(plugins)/something.so")
        #expect(chown("\(plugins)/something.so", owner, 0) == 0)
        let other = Peer(user: 12345, group: 12345).command
        let copy = try TemporaryDirectory()
        let program = try BuildProducts.copy(of: "crudd-plugin-check", to: copy)
        let outcome = try Command.run(
            other.path, other.arguments + [program, "\(plugins)/something.so"])
        #expect(outcome.status == .exited(78))
        let isRefused = outcome.errors.contains("belongs to user 54321, neither to root nor to the daemon's own user")
        #expect(isRefused == (owner == 54321), "\(outcome.errors)")
        #expect(outcome.errors.contains("crudd_plugin_entry") == (owner != 54321), "\(outcome.errors)")
    }

    @Test(.enabled(if: geteuid() == 0, "needs root to give a file away"))
    func itsOwnerIsRootOrWeOurselves() throws {
        #expect(chown("\(plugins)/good.so", 12345, 0) == 0)
        #expect(try error("good").contains("belongs to user 12345"))
        #expect(chown("\(plugins)/good.so", 0, 0) == 0)
        #expect(chown(plugins, 12345, 0) == 0)
        #expect(try error("good").contains("\(plugins) belongs to user 12345"))
    }

    @Test func mustBeAFile() throws {
        try Files.makeDirectory("\(plugins)/folder.so")
        #expect(try error("folder") == "\(plugins)/folder.so is not a regular file")
        #expect(mkfifo("\(plugins)/pipe.so", 0o644) == 0)
        #expect(try error("pipe") == "\(plugins)/pipe.so is not a regular file")
    }

    @Test func itsDigestMayBePinned() throws {
        let digest = SHA256.digest("good".utf8)
        #expect(try find("good", sha256: digest) == "\(plugins)/good.so")
        let other = SHA256.digest("bad".utf8)
        #expect(
            try error("good", sha256: other).contains("has the SHA-256 \(digest), the configuration wants \(other)"))
    }
}
