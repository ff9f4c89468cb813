import CRUDTestSupport
import Glibc
import ScriptedDaemon
import Testing

/// `crudctl watch`. A script that gets a request for the next page knows that the previous one was printed.
@Suite struct WatchTests {
    private static func page(_ cursor: String, _ changes: String...) -> String {
        #"{"changes":[\#(changes.joined(separator: ","))],"cursor":"\#(cursor)","more":false}"#
    }

    private static let expired = #"{"code":-32014,"message":"forgotten","data":{"name":"cursor_expired"}}"#

    @Test func printsAndRemembersWhatChanges() async throws {
        let daemon = try ScriptedDaemon { listener in
            var requests: [ScriptedRequest] = []
            func next(_ peer: ScriptedPeer) throws -> ScriptedRequest {
                requests.append(try peer.request())
                return requests[requests.count - 1]
            }
            let first = try listener.accept()
            let saved = "{\"id\":\"a\",\n \"item\":1e400,\"revision\":\"1\"}"
            try first.reply(to: next(first), Self.page("c1", saved, #"{"id":"b","deleted":true}"#))
            _ = try next(first)
            first.close()
            let second = try listener.accept()
            try second.reject(next(second), #"{"code":-32008,"message":"down","data":{}}"#)
            try second.reply(to: next(second), Self.page("c1"))
            try second.reply(to: next(second), Self.page("c2", #"{"id":"a","revision":"3","matches":false}"#))
            try second.reject(next(second), Self.expired)
            try second.drain()
            return requests.map { $0.strings["after"] ?? "" }
        }
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/cursor"
        let run = try CrudctlProgram.run(["watch", "c", "--cursor-file", file, "--socket", daemon.path])
        #expect(run.status == .exited(65))
        let lines = [
            #"{"id":"a",  "item":1e400,"revision":"1"}"#, #"{"id":"b","deleted":true}"#,
            #"{"id":"a","revision":"3","matches":false}"#,
        ]
        #expect(run.output == lines.joined(separator: "\n") + "\n")
        #expect(run.errors == "crudctl: down; trying again\ncrudctl: cursor_expired: forgotten\n")
        #expect(String(decoding: try Files.read(file), as: UTF8.self) == "c2\n")
        #expect(try Files.names(in: directory.path) == ["cursor"])
        #expect(try await daemon.finish() == ["start", "c1", "c1", "c1", "c1", "c2"])
    }

    @Test(arguments: [
        ([], #""after":"start","wait":5"#), (["--after", "now"], #""after":"now""#),
        (["--after=k", "--no-items", "--prefix", "p"], #""prefix":"p","items":false,"after":"k","wait":5"#),
        (
            ["--where", "a = 1"],
            #""filter":{"op":"=","args":[{"property":"a"},1]},"after":"start","wait":5"#
        ),
    ])
    func asksFor(_ arguments: [String], _ params: String) async throws {
        let daemon = try ScriptedDaemon(replying: Self.expired)
        _ = try CrudctlProgram.run(["watch", "a b", "--socket", daemon.path] + arguments)
        let request = #"{"jsonrpc":"2.0","id":1,"method":"collection.changes","params":{"collection":"a b","#
        #expect(try await daemon.finish() == [request + params + "}}"])
    }

    @Test func continuesAtTheCursorOfItsFile() async throws {
        let daemon = try ScriptedDaemon(replying: Self.expired)
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/cursor"
        let words = ["watch", "c", "--after", "now", "--cursor-file", file, "--socket", daemon.path]
        for content in ["", "two words"] {
            try Files.write(content, to: file)
            let run = try CrudctlProgram.run(words)
            #expect(run.status == .exited(64))
            #expect(run.errors.contains("\(file) has no cursor"))
        }
        try Files.write("c7\n", to: file)
        #expect(try CrudctlProgram.run(words).status == .exited(65))
        #expect(try await daemon.finish()[0].contains(#""after":"c7""#))
    }

    @Test func namesTheFileWhoseCursorIsNone() async throws {
        let refusal = #"{"code":-32010,"message":"no cursor","data":{"name":"invalid_query","retryable":false}}"#
        let daemon = try ScriptedDaemon(replying: refusal, refusal)
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/cursor"
        let words = ["watch", "c", "--after", "odd", "--cursor-file", file, "--socket", daemon.path]
        #expect(try CrudctlProgram.run(words).errors == "crudctl: invalid_query: no cursor\n")
        try Files.write("garbage\n", to: file)
        let run = try CrudctlProgram.run(words)
        #expect(run.status == .exited(65))
        let hint = "the cursor is that of \(file): delete it to begin again"
        #expect(run.errors == "crudctl: invalid_query: no cursor; \(hint)\n")
        _ = try await daemon.finish()
    }

    /// The users who may read the file before may read it afterwards, and no others.
    @Test(arguments: [0o600, 0o640, 0o666] as [mode_t]) func keepsThePermissionsOfItsFile(mode: mode_t) async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            try peer.reply(to: peer.request(), Self.page("c2"))
            try peer.reject(peer.request(), Self.expired)
            try peer.drain()
        }
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/cursor"
        try Files.write("c1\n", to: file)
        try Files.setMode(mode, of: file)
        _ = try CrudctlProgram.run(["watch", "c", "--cursor-file", file, "--socket", daemon.path])
        #expect(String(decoding: try Files.read(file), as: UTF8.self) == "c2\n")
        #expect(try #require(Files.status(file)).st_mode & 0o777 == mode)
        try await daemon.finish()
    }

    /// Before the first page: what was printed would be printed again.
    @Test func saysAtOnceThatTheCursorCannotBeKept() async throws {
        let directory = try TemporaryDirectory()
        let (file, link, folder) = ("\(directory.path)/file", "\(directory.path)/link", "\(directory.path)/folder")
        try Files.write("c1\n", to: file)
        try Files.makeDirectory(folder)
        #expect(symlink(file, link) == 0 && mkfifo("\(directory.path)/pipe", 0o600) == 0)
        let files: [(path: String, error: String)] = [
            ("\(directory.path)/none/cursor", "cannot write {}: No such file or directory"),
            ("\(file)/cursor", "cannot write {}: Not a directory"), (link, "{} is a symbolic link"),
            (folder, "{} is not a regular file"), ("\(directory.path)/pipe", "{} is not a regular file"),
            ("\(directory.path)/", "{} is not a regular file"),
        ]
        for file in files {
            let run = try CrudctlProgram.run(["watch", "c", "--cursor-file", file.path, "--socket", "/nowhere"])
            #expect(run.status == .exited(64) && run.output == "")
            let error = file.error.split(separator: "{}", omittingEmptySubsequences: false).joined(separator: file.path)
            #expect(run.errors.hasPrefix("crudctl: invalid_params: \(error)"), "\(run.errors)")
            #expect(run.errorLines.count == 1)
        }
        #expect(String(decoding: try Files.read(file), as: UTF8.self) == "c1\n")
        #expect(try Files.names(in: directory.path).sorted() == ["file", "folder", "link", "pipe"])
    }

    @Test(.enabled(if: geteuid() == 0, "needs root to mount a file system"))
    func saysAtOnceThatThereIsNoRoomForTheCursor() throws {
        let directory = try TemporaryDirectory()
        let script = #"""
            mount -t tmpfs -o size=4k none "$1" && head -c 4096 /dev/zero > "$1/full" &&
            exec "$0" watch c --cursor-file "$1/cursor" --socket /nowhere
            """#
        let run = try Command.run("unshare", ["--mount", "sh", "-c", script, CrudctlProgram.path, directory.path])
        #expect(run.status == .exited(75))
        let message = "cannot write \(directory.path)/cursor: No space left on device"
        #expect(run.errors == "crudctl: no_space: \(message)\n")
    }

    /// Another user of the directory may know its name, and what a fixed name of a new file would be.
    @Test func followsNoLinkThatWaitsForItsCursor() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            try peer.reply(to: peer.request(), Self.page("c1"))
            try peer.reject(peer.request(), Self.expired)
            try peer.drain()
        }
        let directory = try TemporaryDirectory()
        let (file, other) = ("\(directory.path)/cursor", "\(directory.path)/other")
        try Files.write("precious", to: other)
        #expect(symlink(other, "\(file).new") == 0)
        let run = try CrudctlProgram.run(["watch", "c", "--cursor-file", file, "--socket", daemon.path])
        #expect(run.status == .exited(65))
        #expect(String(decoding: try Files.read(other), as: UTF8.self) == "precious")
        #expect(String(decoding: try Files.read(file), as: UTF8.self) == "c1\n")
        #expect(try Files.names(in: directory.path).sorted() == ["cursor", "cursor.new", "other"])
        try await daemon.finish()
    }

    @Test func endsByAnInterruption() async throws {
        let daemon = try ScriptedDaemon { listener in
            _ = try listener.accept().request()
        }
        let process = try ChildProcess(
            CrudctlProgram.path, ["watch", "c", "--socket", daemon.path], descriptors: [])
        try await daemon.finish()
        process.signal(SIGINT)
        #expect(try process.waitForExit() == .killed(signal: SIGINT))
    }

    /// Quietly, and even if nothing more changes.
    @Test func endsWhenNobodyReads() async throws {
        let daemon = try ScriptedDaemon { listener in
            let peer = try listener.accept()
            try peer.reply(to: peer.request(), Self.page("c1", #"{"id":"a","deleted":true}"#))
            while let request = try? peer.request() { try? peer.reply(to: request, Self.page("c1")) }
        }
        let directory = try TemporaryDirectory()
        let script = #""$0" watch c --socket "$1" 2> "$2/errors"; echo $? > "$2/status""#
        let run = try Command.run(
            "sh", ["-c", "(\(script)) | head -n 1", CrudctlProgram.path, daemon.path, directory.path])
        #expect(run.output == #"{"id":"a","deleted":true}"# + "\n")
        #expect(String(decoding: try Files.read("\(directory.path)/status"), as: UTF8.self) == "\(128 + SIGPIPE)\n")
        #expect(try Files.read("\(directory.path)/errors").isEmpty)
        try await daemon.finish()
    }
}
