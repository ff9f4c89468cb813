import CRUDPluginKit
import Glibc
import Synchronization

/// The ownership of a schema: the one row of `crudd_lease`.
///
/// Its holder renews it every ``renewalInterval`` and may be sure of it for ``certainty`` after it has sent a renewal;
/// others may take it over when it has not been renewed for ``duration``, by the server's clock. That keeps what the
/// host remembers of records coherent.
///
/// Writes do not depend on clocks. Each transaction that writes begins by locking the row in share mode, on condition
/// that its number `fence` is the one that the holder has got with the lease; taking it over, or ``advance(_:_:)``,
/// raises that number and so waits for transactions in progress and refuses later ones.
final class Lease: Sendable {
    static let renewalInterval: Int64 = 2_000_000_000
    static let certainty: Int64 = 8_000_000_000
    private static let duration = "interval '10 seconds'"

    private let table: String
    /// Tells this holder from all others, ever.
    private let holder = HolderIdentity.make()
    private let number = Atomic<Int64>(0)
    private let mayHaveAdvanced = Atomic(false)

    init(_ schema: Schema) {
        table = schema.table("crudd_lease")
    }

    /// The number that transactions of the holder expect.
    var fence: Int64 { number.load(ordering: .acquiring) }

    /// Whether ``fence`` may be out of date, though nobody else holds the lease: the reply to ``advance(_:_:)`` was
    /// lost.
    var isInDoubt: Bool { mayHaveAdvanced.load(ordering: .acquiring) }

    /// What the statements of transactions are made for.
    var scope: StatementScope { StatementScope(number: -1, table: table, removals: "", itemType: .text, indexes: []) }

    /// A statement with the parameter ``fence`` that locks the row, and fails with ``lossState`` if the lease is lost.
    static func fenceSQL(_ table: String) -> String {
        """
        WITH held AS (SELECT 1 FROM \(table) WHERE number = 1 AND fence = $1 FOR SHARE)
        SELECT 1 / count(*) FROM held
        """
    }

    /// The SQLSTATE of a division by zero.
    static let lossState = "22012"

    /// Acquires the lease.
    ///
    /// - Returns: above which no sequence number has been used.
    /// - Throws: `unavailable` while somebody else holds it.
    func acquire(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> UInt64 {
        let held = try connection.query(
            "SELECT coalesce(holder, ''), coalesce(place, '') FROM \(table) WHERE number = 1", Parameters(), [], wait
        ).check("read the lease")
        guard held.rowCount == 1 else { throw StorageFailure(.corrupt, "\(table) has no row") }
        let previous = held.text(0, 0)
        var parameters = Parameters()
        parameters.add(holder)
        parameters.add(HolderIdentity.place)
        // One that was killed on this machine need not be waited for.
        parameters.add(HolderIdentity.isDead(previous) ? previous : "")
        let result = try connection.query(
            """
            UPDATE \(table) SET holder = $1, place = $2, fence = fence + 1, expires_at = now() + \(Self.duration)
            WHERE number = 1 AND (holder IS NULL OR holder = $3 OR expires_at < now())
            RETURNING fence, sequence_ceiling
            """, parameters, [.text, .text, .text], wait
        ).check("acquire the lease")
        guard result.rowCount == 1 else {
            throw StorageFailure(.unavailable, "the schema is in use by \(held.text(0, 1))")
        }
        number.store(result.integer(0, 0), ordering: .releasing)
        return UInt64(clamping: result.integer(0, 1))
    }

    /// Above which no sequence number has been used, where nobody holds the lease.
    func sequenceCeiling(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> UInt64 {
        let ceiling = try connection.query(
            "SELECT sequence_ceiling FROM \(table) WHERE number = 1", Parameters(), [], wait
        ).check("read the lease")
        return ceiling.rowCount == 1 ? UInt64(clamping: ceiling.integer(0, 0)) : 0
    }

    /// Renews the lease.
    ///
    /// - Returns: false if somebody else has acquired it.
    func renew(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> Bool {
        try update("expires_at = now() + \(Self.duration)", connection, wait).affectedRows == 1
    }

    /// Waits for transactions of lost connections to end, and has those fail that have not yet begun.
    ///
    /// - Returns: false if somebody else has acquired the lease.
    func advance(_ connection: Connection, _ wait: Wait) throws(StorageFailure) -> Bool {
        mayHaveAdvanced.store(true, ordering: .releasing)
        let result = try update("fence = fence + 1", connection, wait)
        mayHaveAdvanced.store(false, ordering: .releasing)
        guard result.affectedRows == 1 else { return false }
        number.store(result.integer(0, 0), ordering: .releasing)
        return true
    }

    /// Notes durably that sequence numbers up to `ceiling` may be used.
    ///
    /// - Parameter isShared: whether there is no holder.
    func reserve(
        _ ceiling: UInt64, isShared: Bool, _ connection: Connection, _ wait: Wait
    ) throws(StorageFailure) -> Bool {
        var parameters = Parameters()
        parameters.add(Int64(clamping: ceiling))
        if !isShared { parameters.add(holder) }
        let result = try connection.query(
            """
            UPDATE \(table) SET sequence_ceiling = greatest(sequence_ceiling, $1)
            WHERE number = 1\(isShared ? "" : " AND holder = $2")
            """, parameters, isShared ? [.int8] : [.int8, .text], wait
        ).check("reserve sequence numbers")
        return result.affectedRows == 1
    }

    func release(_ connection: Connection, _ wait: Wait) throws(StorageFailure) {
        _ = try update("holder = NULL, expires_at = NULL", connection, wait)
    }

    private func update(
        _ assignment: String, _ connection: Connection, _ wait: Wait
    ) throws(StorageFailure) -> QueryResult {
        var parameters = Parameters()
        parameters.add(holder)
        return try connection.query(
            "UPDATE \(table) SET \(assignment) WHERE number = 1 AND holder = $1 RETURNING fence", parameters,
            [.text], wait
        ).check("renew the lease")
    }
}

/// Who holds a lease, such that another process of the same machine can tell that it has ended.
enum HolderIdentity {
    /// For the administrator.
    static var place: String {
        var name = [CChar](repeating: 0, count: 256)
        gethostname(&name, name.count - 1)
        return "process \(getpid()) of \(text(name))"
    }

    /// `BOOT/NAMESPACE/PID/START/RANDOM`: a process is known by its id, within a namespace of ids and one run of the
    /// kernel, and by the time at which it was started.
    static func make() -> String {
        "\(machine)/\(getpid())/\(startTime(of: getpid()) ?? "")/\(UInt64.random(in: 0 ... .max))"
    }

    /// Whether a holder is certain to have ended.
    static func isDead(_ holder: String) -> Bool {
        let parts = holder.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 5, "\(parts[0])/\(parts[1])" == machine, !machine.hasPrefix("/"), !machine.hasSuffix("/"),
            let pid = pid_t(parts[2]), pid > 0
        else { return false }
        if kill(pid, 0) == -1, errno == ESRCH { return true }
        // Another process may have got its id.
        guard let start = startTime(of: pid) else { return false }
        return start != parts[3]
    }

    private static let machine: String = {
        let boot = text(of: "/proc/sys/kernel/random/boot_id")?.filter { !$0.isNewline } ?? ""
        var namespace = [CChar](repeating: 0, count: 64)
        let size = readlink("/proc/self/ns/pid", &namespace, namespace.count - 1)
        return "\(boot)/\(size > 0 ? text(namespace) : "")"
    }()

    /// Field 22 of `/proc/PID/stat`; nil where it cannot be read, or the process has ended and is a zombie.
    private static func startTime(of pid: pid_t) -> String? {
        // The second field is the program's name, which may hold spaces and parentheses.
        guard let stat = text(of: "/proc/\(pid)/stat"), let end = stat.lastIndex(of: ")") else { return nil }
        let fields = stat[end...].split(separator: " ")
        guard fields.count > 20 else { return nil }
        // A zombie holds nothing any more.
        return fields[1] == "Z" ? "ended" : String(fields[20])
    }

    private static func text(of path: String) -> String? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var bytes = [CChar](repeating: 0, count: 4096)
        let count = fread(&bytes, 1, bytes.count - 1, file)
        return count > 0 ? text(bytes) : nil
    }

    /// What stands before the terminator.
    private static func text(_ characters: [CChar]) -> String {
        String(decoding: characters.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
