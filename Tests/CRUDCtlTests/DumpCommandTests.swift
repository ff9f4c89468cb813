import CRUDTestSupport
import Glibc
import ScriptedDaemon
import Testing

/// What `crudctl dump` and `load` do when something happens that a real daemon does rarely.
@Suite struct DumpCommandTests {
    private static let description = #"{"name":"c","backend":"main","format":"json","indexes":[],"count":3}"#
    private static let limits = #"{"daemon":"crudd","limits":{"frame_bytes":65536,"item_bytes":32768,"batch":2}}"#
    private static let dump = """
        {"crudd":"dump","version":1,"collection":"c","format":"json"}
        {"id":"a","item":1.50e+2}
        {"id":"b","item":[ 2.0 ],"expiresAt":99999999999999}
        {"id":"c","item":3}
        {"count":3}

        """

    /// A daemon that replies to one connection, and returns the requests from `params` on.
    private static func daemon(_ replies: String...) throws -> ScriptedDaemon<[String]> {
        try ScriptedDaemon { listener in
            let peer = try listener.accept()
            let requests = try replies.map { reply in
                let request = try peer.request()
                if reply == "-" {
                    peer.close()
                } else if reply.hasPrefix(#"{"code""#) {
                    try peer.reject(request, reply)
                } else {
                    try peer.reply(to: request, reply)
                }
                return String(request.text.drop { $0 != "{" }.drop { $0 == "{" }.drop { $0 != "{" })
            }
            if replies.last != "-" { try peer.drain() }
            return requests
        }
    }

    @Test func dumpsPageAfterPage() async throws {
        let daemon = try Self.daemon(
            Self.description, #"{"records":[{"id":"a","item": 1e400 ,"revision":"r"}],"cursor":"k","corrupt":["x"]}"#,
            #"{"records":[],"cursor":"l"}"#,
            #"{"records":[{"id":"\u00e9","item":"\/","revision":"r","expiresAt":17}],"#
                + #""corrupt":["y","z","é","\n","u"]}"#,
            Self.description, #"{"records":[]}"#)
        let run = try CrudctlProgram.run(["dump", "c", "d", "--socket", daemon.path])
        #expect(
            run.output == """
                {"crudd":"dump","version":1,"collection":"c","format":"json"}
                {"id":"a","item":1e400}
                {"id":"\\u00e9","item":"\\/","expiresAt":17}
                {"count":2}
                {"crudd":"dump","version":1,"collection":"d","format":"json"}
                {"count":0}

                """)
        #expect(run.status == .exited(70), "but the other collection is dumped first")
        let message = #"records of "c" that cannot be decoded are not in the dump: "x", "y", "z", "é", "\n" and others"#
        #expect(run.errors == "crudctl: corrupt: \(message)\n")
        #expect(try await daemon.finish()[2] == #"{"collection":"c","cursor":"k"}}"#)
    }

    @Test func aDumpThatFailsHasNoLastLine() async throws {
        let down = #"{"code":-32008,"message":"down","data":{"name":"unavailable","retryable":true}}"#
        let daemon = try Self.daemon(Self.description, #"{"records":[],"cursor":"k"}"#, down)
        let run = try CrudctlProgram.run(["dump", "c", "--socket", daemon.path])
        #expect(run.status == .exited(69))
        #expect(run.output.split(separator: "\n").count == 1)
        #expect(run.errors == "crudctl: unavailable: down\n")
        _ = try await daemon.finish()
    }

    @Test func loadsInBatchesThatTheDaemonTakes() async throws {
        let daemon = try Self.daemon(
            Self.limits, #"{"results":[{"result":{}},{"result":{}}]}"#, #"{"results":[{"result":{}}]}"#)
        let run = try CrudctlProgram.run(["load", "--upsert", "--socket", daemon.path], input: Self.dump)
        #expect(run.output == #"{"loaded":[{"collection":"c","records":3}]}"# + "\n", "\(run.errors)")
        #expect(run.status == .exited(0))
        let requests = try await daemon.finish()
        let first =
            #"{"operations":[{"op":"upsert","collection":"c","id":"a","item":1.50e+2},"#
            + #"{"op":"upsert","collection":"c","id":"b","item":[ 2.0 ],"expiresAt":99999999999999}]}}"#
        #expect(requests[1] == first, "\(requests[1])")
        #expect(requests[2] == #"{"operations":[{"op":"upsert","collection":"c","id":"c","item":3}]}}"#)
    }

    @Test(arguments: [
        (
            #"{"code":-32008,"message":"down","data":{"name":"unavailable","retryable":true}}"#, Int32(69),
            "unavailable: line 4: down; 2 of 3 records were written"
        ),
        (
            "-", Int32(74),
            "outcome_unknown: line 4: record.batch was sent, but the connection was lost; it may or may not have been "
                + "applied; 2 of 3 records were written, and 1 more may have been"
        ),
    ])
    func saysHowFarItHasCome(_ reply: String, _ status: Int32, _ message: String) async throws {
        let daemon = try Self.daemon(Self.limits, #"{"results":[{"result":{}},{"result":{}}]}"#, reply)
        let run = try CrudctlProgram.run(["load", "--socket", daemon.path], input: Self.dump)
        #expect(run.status == .exited(status))
        #expect(run.output == "")
        #expect(run.errors == "crudctl: \(message); load the dump again with --upsert to continue\n")
        _ = try await daemon.finish()
    }

    @Test(.enabled(if: geteuid() == 0, "needs root to mount a file system"))
    func saysThatThereIsNoRoomForTheCopyOfAPipe() async throws {
        let daemon = try Self.daemon(Self.limits)
        let directory = try TemporaryDirectory()
        let script = #"""
            mount -t tmpfs -o size=64k none "$2" &&
            head -c 200000 /dev/zero | TMPDIR="$2" "$0" load --socket "$1"
            """#
        let run = try Command.run(
            "unshare", ["--mount", "sh", "-c", script, CrudctlProgram.path, daemon.path, directory.path])
        #expect(run.status == .exited(75))
        let message = "cannot write a temporary file in \(directory.path): No space left on device"
        #expect(run.errors == "crudctl: no_space: \(message)\n")
        _ = try await daemon.finish()
    }

    @Test(arguments: [UInt16(100), 60, 30, 12])
    func drawsABarOnATerminal(_ columns: UInt16) async throws {
        let results = #"{"results":[{"result":{}},{"result":{}}]}"#
        let daemon = try Self.daemon(Self.limits, results, #"{"results":[{"result":{}}]}"#)
        let directory = try TemporaryDirectory()
        try Files.write(Self.dump, to: directory.path + "/dump")
        let load = try CrudctlProgram.terminal(
            [CrudctlProgram.path, "load", directory.path + "/dump", "-o", "json", "--socket", daemon.path],
            columns: columns)
        #expect(load.status == .exited(0))
        let lines = load.screen.split(separator: "\n").flatMap { $0.split(separator: "\u{1B}[K") }
        #expect(lines.dropLast().allSatisfy { $0.count < Int(columns) }, "\(lines)")
        #expect(lines.contains { $0.contains("#") } == (columns > 40))
        if columns == 100 {
            #expect(load.screen.contains("c  loading  [") && load.screen.contains("100%  3/3 records"))
        }
        _ = try await daemon.finish()
    }

    @Test func aDumpOnTheTerminalItselfHasNoBar() async throws {
        let page = #"{"records":[{"id":"a","item":1,"revision":"r"}]}"#
        for (output, hasBar) in [("", false), (" > /dev/null", true)] {
            let daemon = try Self.daemon(Self.description, page)
            let line = #"exec "$0" dump c --socket "$1""# + output
            let run = try CrudctlProgram.terminal(["sh", "-c", line, CrudctlProgram.path, daemon.path], columns: 80)
            #expect(run.status == .exited(0))
            #expect(run.screen.contains("c  dumping  [") == hasBar, "\(run.screen)")
            _ = try await daemon.finish()
        }
    }
}
