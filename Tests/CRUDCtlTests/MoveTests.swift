import CRUDTestSupport
import ScriptedDaemon
import Testing

/// `crudctl reload --move` follows the moves that a reload begins.
@Suite struct MoveTests {
    private static let reload = #"{"changes":["collection c moves"],"moves":["c","Ünï"]}"#

    private static func status(_ moves: String...) -> String {
        #"{"pid":1,"moves":[\#(moves.joined(separator: ","))]}"#
    }

    private static func move(
        _ name: String, _ copied: Int, _ phase: String, of total: Int = 1000, reason: String? = nil
    ) -> String {
        let reason = reason.map { #","reason":"\#($0)""# } ?? ""
        return #"{"collection":"\#(name)","from":{"backend":"main","format":"json"},"#
            + #""to":{"backend":"files","format":"xml"},"copied":\#(copied),"total":\#(total),"#
            + #""phase":"\#(phase)"\#(reason)}"#
    }

    private static func description(_ backend: String) -> String {
        #"{"backend":"\#(backend)","format":"xml","count":9}"#
    }

    /// A daemon that replies to one connection, to the last request over and over, and returns the methods.
    private static func daemon(_ replies: [String]) throws -> ScriptedDaemon<[String]> {
        try ScriptedDaemon { listener in
            let peer = try listener.accept()
            return try replies.map { reply in
                let request = try peer.request()
                try peer.reply(to: request, reply)
                return request.method + (request.strings["collection"].map { " \($0)" } ?? "")
            }
        }
    }

    @Test func waitsUntilEveryMoveIsOver() async throws {
        let daemon = try Self.daemon([
            Self.reload, Self.status(Self.move("c", 0, "pending"), Self.move("Ünï", 0, "pending")),
            Self.status(Self.move("Ünï", 500, "copying")), Self.status(), Self.description("files"),
            Self.description("files"),
        ])
        let run = try CrudctlProgram.run(["reload", "--move", "--socket", daemon.path])
        #expect(run.status == .exited(0))
        #expect(run.output == Self.reload + "\n")
        #expect(run.errors == "", "without a terminal there is no bar")
        let asked = ["daemon.status", "daemon.status", "daemon.status"]
        let checked = ["collection.describe c", "collection.describe Ünï"]
        #expect(try await daemon.finish() == ["daemon.reload"] + asked + checked)
    }

    @Test func doesNotWaitWithoutMoves() async throws {
        let daemon = try Self.daemon([#"{"changes":[],"moves":[]}"#, Self.status()])
        #expect(try CrudctlProgram.run(["reload", "--move", "--socket", daemon.path]).status == .exited(0))
        #expect(try await daemon.finish() == ["daemon.reload", "daemon.status"])
        let other = try Self.daemon([Self.reload])
        #expect(try CrudctlProgram.run(["reload", "--move", "--detach", "--socket", other.path]).status == .exited(0))
        #expect(try await other.finish() == ["daemon.reload"])
    }

    /// Such as one that was suspended.
    @Test func followsMovesThatHadBegunBefore() async throws {
        let daemon = try Self.daemon([
            #"{"changes":[],"moves":[],"cancelled":["d"]}"#, Self.status(Self.move("c", 3, "copying")),
            Self.status(Self.move("c", 9, "switching")), Self.status(), Self.description("files"),
        ])
        let run = try CrudctlProgram.run(["reload", "--move", "--socket", daemon.path])
        #expect(run.status == .exited(0), "\(run.errors)")
        #expect(try await daemon.finish().suffix(2) == ["daemon.status", "collection.describe c"])
    }

    @Test func drawsABarForEachMove() async throws {
        let daemon = try Self.daemon([
            Self.reload, Self.status(Self.move("c", 250, "copying"), Self.move("Ünï", 0, "pending")),
            Self.status(Self.move("c", 500, "copying"), Self.move("Ünï", 1000, "switching")), Self.status(),
            Self.description("files"), Self.description("files"),
        ])
        let run = try CrudctlProgram.terminal(
            [CrudctlProgram.path, "reload", "--move", "-o", "ndjson", "--socket", daemon.path], columns: 90)
        #expect(run.status == .exited(0), "\(run.screen)")
        #expect(run.screen.contains("c  copying  [#######.....................]   25%  250/1000 records\u{1B}[K\n"))
        #expect(run.screen.contains("Ünï  pending  ["))
        #expect(run.screen.contains("\u{1B}[1Ac  copying  ["), "the second picture replaces the first")
        #expect(run.screen.contains("/s  0:0"), "records per second and the time that is left")
        #expect(run.screen.contains("Ünï  switching  ["))
        #expect(run.screen.contains("c  moved  [") && run.screen.hasSuffix("100%  1000/1000 records\u{1B}[K\n"))
        let lines = run.screen.split(separator: "\n").flatMap { $0.split(separator: "\u{1B}") }
        #expect(lines.allSatisfy { $0.count < 90 }, "\(lines)")
        _ = try await daemon.finish()
    }

    @Test func hasNoBarBeforeTheRecordsAreCounted() async throws {
        let daemon = try Self.daemon([
            #"{"changes":[],"moves":["c"]}"#, Self.status(Self.move("c", 0, "pending", of: 0)), Self.status(),
            #"{"backend":"files","format":"xml","count":0}"#,
        ])
        let run = try CrudctlProgram.terminal(
            [CrudctlProgram.path, "reload", "--move", "-o", "ndjson", "--socket", daemon.path], columns: 90)
        #expect(run.screen.contains("c  pending  0 records\u{1B}[K"), "\(run.screen)")
        #expect(run.screen.contains("c  moved  [##") && run.screen.contains("100%  0/0 records"), "\(run.screen)")
        _ = try await daemon.finish()
    }

    @Test func aMoveThatHasFailedIsAnError() async throws {
        let daemon = try Self.daemon([
            Self.reload,
            Self.status(Self.move("c", 3, "failed", reason: "no place for null"), Self.move("Ünï", 1, "copying")),
            Self.status(Self.move("c", 3, "failed", reason: "no place for null")),
        ])
        let run = try CrudctlProgram.run(["reload", "--move", "--socket", daemon.path])
        #expect(run.status == .exited(65))
        let message = #"the move of collection "c" to backend files as xml has failed: no place for null"#
        #expect(run.errors == "crudctl: unsupported: \(message); the collection stays where it is\n")
        #expect(try await daemon.finish().count == 3, "the other one is over first")
    }

    @Test func aSuspendedMoveIs75() async throws {
        let suspended = Self.status(Self.move("c", 3, "suspended", reason: "backend files is down"))
        let daemon = try Self.daemon(
            [Self.reload] + Array(repeating: suspended, count: 5)
                + [Self.status(Self.move("c", 4, "copying"))] + Array(repeating: suspended, count: 10))
        let run = try CrudctlProgram.run(["-o", "json", "reload", "--move", "--socket", daemon.path])
        #expect(run.status == .exited(75))
        let error = try JSON(parsing: run.errors)
        #expect(error["data"]?["name"]?.string == "unavailable")
        #expect(error["message"]?.string?.contains("suspended: backend files is down; the daemon retries it") == true)
        _ = try await daemon.finish()
    }

    @Test func aMoveThatWasCancelledIsAnError() async throws {
        let daemon = try Self.daemon([
            #"{"changes":[],"moves":["c"]}"#, Self.status(Self.move("c", 3, "copying")), Self.status(),
            Self.description("main"),
        ])
        let run = try CrudctlProgram.run(["reload", "--move", "--socket", daemon.path])
        #expect(run.status == .exited(69))
        #expect(run.errors.hasSuffix("was cancelled; the collection stays where it is\n"), "\(run.errors)")
        _ = try await daemon.finish()
    }
}
