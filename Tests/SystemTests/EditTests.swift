import CRUDTestSupport
import Glibc
import Testing

/// `crudctl edit`, with scripts as editors; `read` of several ids, and `sessions --close`.
@Suite(.daemon) struct EditTests: CrudctlSuite {
    /// Runs `crudctl edit` with the body of a script as the editor, whose first argument is the file.
    private static func edit(_ collection: String, _ id: String, _ script: String) throws -> (
        outcome: Command.Outcome, files: [String: String]
    ) {
        let directory = try TemporaryDirectory()
        try Files.makeDirectory("\(directory.path)/a 'b\"")
        try Files.write("#!/bin/sh\n\(script)\n", to: "\(directory.path)/editor", mode: 0o755)
        let temporary = "\(directory.path)/a 'b\""
        // Executed by sh, lest a child that another test is starting has the script open for writing.
        let outcome = try Command.run(
            BuildProducts.path(of: "crudctl"), ["edit", collection, id],
            environment: [
                "CRUDD_SOCKET": Daemon.shared.socketPath, "EDITOR": "sh \(directory.path)/editor", "TMPDIR": temporary,
                "CRUDCTL": try BuildProducts.path(of: "crudctl"),
            ])
        var files: [String: String] = [:]
        for name in try Files.names(in: temporary) {
            #expect((Files.status("\(temporary)/\(name)")?.st_mode ?? 0) & 0o777 == 0o600)
            files[name] = String(decoding: try Files.read("\(temporary)/\(name)"), as: UTF8.self)
        }
        return (outcome, files)
    }

    @Test func anItemIsEditedAndKeepsItsExpiry() throws {
        #expect(
            try run("create", "edit-plain", "a b", #"{"n":1e400,"s":["x"]}"#, "--ttl", "3600").status == .exited(0))
        let before = try JSON(parsing: run("read", "edit-plain", "a b").output)
        let (outcome, files) = try Self.edit("edit-plain", "a b", #"sed -i 's/"x"/"y"/' "$1""#)
        #expect(outcome.status == .exited(0) && outcome.errors.isEmpty, "\(outcome.errors)")
        let after = try JSON(parsing: run("read", "edit-plain", "a b").output)
        #expect(after["item"]?["n"]?.text == "1e400" && after["item"]?["s"]?.text.contains(#""y""#) == true)
        #expect(after["expiresAt"]?.integer == before["expiresAt"]?.integer && after["expiresAt"] != nil)
        #expect(after["revision"]?.string != before["revision"]?.string && files.isEmpty)
        #expect(try JSON(parsing: outcome.output)["revision"]?.string == after["revision"]?.string)

        let same = try Self.edit("edit-plain", "a b", "true")
        #expect(same.outcome.status == .exited(0) && same.outcome.errors == "crudctl: nothing has been changed\n")
        #expect(same.files.isEmpty)
        #expect(try JSON(parsing: run("read", "edit-plain", "a b").output)["revision"]?.text == after["revision"]?.text)
    }

    @Test func nothingTypedIsLost() throws {
        #expect(try run("create", "edit-lost", "a", "1").status == .exited(0))
        let invalid = try Self.edit("edit-lost", "a", #"echo '{"typed": }' > "$1""#)
        #expect(invalid.outcome.status == .exited(65))
        #expect(invalid.outcome.errorLines.last?.hasPrefix("crudctl: what you have typed is in ") == true)
        #expect(Array(invalid.files.values) == ["{\"typed\": }\n"])

        let conflict = try Self.edit(
            "edit-lost", "a", #""$CRUDCTL" update edit-lost a '"theirs"' >/dev/null; echo '"mine"' > "$1""#)
        #expect(conflict.outcome.status == .exited(75), "\(conflict.outcome.errors)")
        #expect(conflict.outcome.errors.contains("revision_mismatch"))
        #expect(conflict.files.values.sorted() == ["\"mine\"\n", "\"theirs\"\n"])
        #expect(try run("read", "edit-lost", "a", "--raw").output == "\"theirs\"\n")

        let gone = try Self.edit("edit-lost", "a", #""$CRUDCTL" delete edit-lost a >/dev/null; echo '"mine"' > "$1""#)
        #expect(gone.outcome.status == .exited(66) && Array(gone.files.values) == ["\"mine\"\n"])
        #expect(try Self.edit("edit-lost", "a", "true").outcome.status == .exited(66))

        #expect(try run("create", "edit-lost", "b", "1").status == .exited(0))
        let failed = try Self.edit("edit-lost", "b", #"echo 2 > "$1"; exit 3"#)
        #expect(failed.outcome.status == .exited(69) && Array(failed.files.values) == ["2\n"])
        #expect(try Self.edit("edit-lost", "b", "exit 3").files.isEmpty)
        #expect(try run("read", "edit-lost", "b", "--raw").output == "1\n")
    }

    @Test func severalRecordsAreRead() throws {
        for (id, item) in [("a", "1.0"), ("b", #"{"n":2,"m":3}"#), ("c", #"{"n":4}"#)] {
            #expect(try run("create", "read-many", id, item).status == .exited(0))
        }
        let raw = try run("read", "read-many", "c", "a", "--raw")
        #expect(raw.output == "{\"n\":4}\n1.0\n" && raw.status == .exited(0))
        let fields = try run("read", "read-many", "b", "c", "--fields", "n", "-o", "ndjson")
        #expect(
            fields.output.split(separator: "\n").map { $0.contains(#""n":"#) && !$0.contains(#""m":"#) } == [
                true, true,
            ])
        let missing = try run("read", "read-many", "x", "c", "y")
        #expect(missing.status == .exited(66))
        #expect(try JSON(parsing: missing.output)["records"]?.elements?.map { $0["id"]?.string } == ["c"])
        #expect(missing.errorLines.count == 2 && missing.errorLines[1].contains(#"no record "y""#), "\(missing.errors)")
        let table = try run("read", "read-many", "b", "c", "-o", "table")
        #expect(table.output == "ID  N  M\nb   2  3\nc   4  \n", "\(table.output)")
    }

    @Test func sessionsAreClosed() throws {
        let connections = try (0..<2).map { _ in try Daemon.shared.connect() }
        let ids = try connections.map { connection in
            try #require(try connection.call("session.whoami").result?["session"]?.integer)
        }
        let closed = try run("sessions", "--close", "\(ids[0])", "--close", "999999999", "--close", "\(ids[1])")
        #expect(closed.status == .exited(65) && closed.errorLines.count == 1, "\(closed.errors)")
        for connection in connections { #expect(try connection.receiveFrame() == nil) }
        let other = try Daemon.shared.connect()
        let id = try #require(try other.call("session.whoami").result?["session"]?.integer)
        #expect(try run("sessions", "--close", "\(id)").output == "{}\n")
    }
}
