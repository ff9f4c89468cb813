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
            ["--where", "a = 1", "--cursor-file", "/nonexistent/cursor"],
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

    @Test func saysThatTheCursorCannotBeKept() async throws {
        let directory = try TemporaryDirectory()
        #expect(symlink("/dev/full", "\(directory.path)/full.new") == 0)
        let files: [(path: String, status: Int32, error: String)] = [
            ("\(directory.path)/none/cursor", 64, "invalid_params: cannot write {}: No such file or directory (see "),
            ("\(directory.path)/full", 75, "no_space: cannot write {}: No space left on device\n"),
        ]
        for file in files {
            let daemon = try ScriptedDaemon(replying: Self.page("c1", #"{"id":"a","deleted":true}"#))
            let run = try CrudctlProgram.run(["watch", "c", "--cursor-file", file.path, "--socket", daemon.path])
            #expect(run.status == .exited(file.status))
            #expect(run.output == #"{"id":"a","deleted":true}"# + "\n")
            let error = file.error.split(separator: "{}").joined(separator: file.path)
            #expect(run.errors.hasPrefix("crudctl: \(error)") && run.errorLines.count == 1, "\(run.errors)")
            _ = try await daemon.finish()
        }
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
