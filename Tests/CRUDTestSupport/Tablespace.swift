/// A tablespace of a server on a file system of its own, in memory, which is unmounted with the last reference.
package final class Tablespace: Sendable {
    private let path: String

    fileprivate init(at path: String, size: String, owner: String) throws {
        self.path = path
        try Files.makeDirectory(path)
        let options = "size=\(size),mode=0700,uid=\(owner)"
        let outcome = try Command.run("mount", ["-t", "tmpfs", "-o", options, "crudd-test", path])
        guard outcome.status == .exited(0) else { throw Failure("mount: \(outcome.errors)") }
    }

    deinit {
        _ = try? Command.run("umount", ["--lazy", path])
    }

    /// Takes all the room that is left, or gives it back.
    package func setFull(_ isFull: Bool) throws {
        let script = isFull ? "! cat /dev/zero > \"$0\" 2> /dev/null" : "rm \"$0\""
        let outcome = try Command.run("sh", ["-c", script, "\(path)/full"])
        guard outcome.status == .exited(0) else { throw Failure("\(path): \(outcome.errors)") }
    }
}

extension PostgreSQLServer {
    /// Makes a tablespace in which everything is created from then on.
    package func mountTablespace(_ name: String, size: String) throws -> Tablespace {
        let path = "\(directory.path)/\(name)"
        let tablespace = try Tablespace(at: path, size: size, owner: Self.user)
        for sql in [
            "CREATE TABLESPACE \(name) LOCATION '\(path)'", "ALTER ROLE crudd SET default_tablespace = \(name)",
        ] {
            guard try query(sql) != nil else { throw Failure("cannot make a tablespace: \(sql)") }
        }
        return tablespace
    }
}
