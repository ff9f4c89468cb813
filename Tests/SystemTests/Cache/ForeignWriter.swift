import CRUDTestSupport
import Glibc

/// A process that writes to a database file beside the daemon.
final class ForeignWriter: Sendable {
    private let process: ChildProcess
    private let channel: Descriptor

    private static let program = """
        import sqlite3, sys
        database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
        for line in sys.stdin:
            number = line.strip()
            changed = database.execute(
                f'''UPDATE "{sys.argv[2]}" SET item = json_set(item, '$.number', {number}),
                revision = lower(hex(randomblob(16))) WHERE id = ?''', [sys.argv[3]])
            print(changed.rowcount, flush=True)
        """

    init(of file: String, table: String, id: String) throws {
        var ends: [Int32] = [0, 0]
        let type = Int32(SOCK_STREAM.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw Failure.system("socketpair") }
        channel = Descriptor(owning: ends[0])
        let theirs = Descriptor(owning: ends[1])
        process = try ChildProcess(
            "/usr/bin/python3", ["-c", Self.program, file, table, id],
            descriptors: [(theirs, STDIN_FILENO), (theirs, STDOUT_FILENO)])
    }

    /// Sets the record's number, and waits until that is committed.
    ///
    /// - Returns: false if there is no such record.
    func write(_ number: Int) throws -> Bool {
        let line = Array("\(number)\n".utf8)
        guard Glibc.write(channel.number, line, line.count) == line.count else { throw Failure.system("write") }
        guard try channel.wait(for: POLLIN, until: Deadline()) != 0 else { throw Failure("no reply") }
        var reply = [UInt8](repeating: 0, count: 64)
        let count = Glibc.read(channel.number, &reply, reply.count)
        guard count > 0 else { throw Failure("the foreign writer has ended") }
        return reply.starts(with: Array("1\n".utf8))
    }
}
