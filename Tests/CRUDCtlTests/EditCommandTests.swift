import CRUDTestSupport
import ScriptedDaemon
import Testing

/// `crudctl edit` on a terminal.
@Suite struct EditCommandTests {
    private static let read = [#"{"id":"x","item":1,"revision":"1"}"#, #"{"id":"x","item":2,"revision":"2"}"#]
    private static let mismatch =
        #"{"code":-32003,"message":"it has another revision","data":{"name":"revision_mismatch"}}"#

    /// After a conflict the text is edited again, beside the record as it is now, and replaces that.
    @Test func offersToEditAgain() async throws {
        let directory = try TemporaryDirectory()
        let editor = "\(directory.path)/editor"
        try Files.write("echo '\"mine\"' > \"$1\"; echo $# >> \(directory.path)/log\n", to: editor)
        try Files.makeDirectory("\(directory.path)/temporary")
        let daemon = try ScriptedDaemon(replying: Self.read[0], Self.mismatch, Self.read[1], #"{"revision":"3"}"#)
        let screen = try CrudctlProgram.run(
            ["edit", "c", "x", "--socket", daemon.path], columns: 200, typing: "\n",
            environment: ["VISUAL": "sh \(editor)", "EDITOR": "false", "TMPDIR": "\(directory.path)/temporary"])
        #expect(screen.contains("Edit again? [Y/n] ") && screen.contains("revision_mismatch"), "\(screen)")
        let requests = try await daemon.finish()
        #expect(requests[1].contains(#""item":"mine""#) && requests[1].contains(#""ifRevision":"1""#), "\(requests)")
        #expect(requests[3].contains(#""item":"mine""#) && requests[3].contains(#""ifRevision":"2""#), "\(requests)")
        #expect(String(decoding: try Files.read("\(directory.path)/log"), as: UTF8.self) == "1\n2\n")
        #expect(try Files.names(in: "\(directory.path)/temporary").isEmpty)
    }

    @Test func whoDoesNotWantToKeepsTheText() async throws {
        let directory = try TemporaryDirectory()
        let editor = "\(directory.path)/editor"
        try Files.write("echo '[' > \"$1\"\n", to: editor)
        try Files.makeDirectory("\(directory.path)/temporary")
        let daemon = try ScriptedDaemon(replying: Self.read[0])
        let run = try CrudctlProgram.terminal(
            [CrudctlProgram.path, "edit", "c", "x", "--socket", daemon.path], columns: 200, typing: "n\n",
            environment: ["EDITOR": "sh \(editor)", "TMPDIR": "\(directory.path)/temporary"])
        #expect(run.status == .exited(65) && run.screen.contains("crudctl: what you have typed is in "), "\(run)")
        let names = try Files.names(in: "\(directory.path)/temporary")
        #expect(names.count == 1)
        for name in names { #expect(try Files.read("\(directory.path)/temporary/\(name)") == Array("[\n".utf8)) }
        _ = try await daemon.finish()
    }
}
