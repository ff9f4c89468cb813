import CRUDPluginKit
import Synchronization

/// Who of several daemons removes what has expired, and forgets removals: the holder of one row of `crudd_lease`. It
/// renews it every ``renewalInterval`` while there is something to do; another daemon takes it when that has not
/// happened for ``duration``, by the server's clock. Transactions of upkeep begin by locking the row in share mode, on
/// condition that its number is the holder's: a daemon that was frozen changes nothing when it comes back.
final class Upkeep: Sendable {
    static let row: Int64 = 0
    private static let renewalInterval: Int64 = 1_000_000_000
    private static let duration = "interval '3 seconds'"

    /// When another daemon that does not do it looks again, in milliseconds.
    static let pauseMilliseconds: Int64 = 1000

    /// When it is to be renewed, by ``Clock/boot``; 0: another daemon had it.
    private let renewal = Atomic<Int64>(0)
    private let number = Atomic<Int64>(0)

    /// Takes or renews the row; false: another daemon has it.
    func take(
        in table: String, _ holder: String, _ connection: Connection, _ wait: Wait
    ) throws(StorageFailure) -> Bool {
        let start = Clock.boot
        if start < renewal.load(ordering: .acquiring) { return true }
        try connection.limitStatements(wait)
        let previous = try connection.query(
            "SELECT coalesce(holder, '') FROM \(table) WHERE number = \(Self.row)", Parameters(), [], wait
        ).check("read who does the upkeep")
        var parameters = Parameters()
        parameters.add(holder)
        parameters.add(HolderIdentity.place)
        // One that was killed on this machine need not be waited for.
        let isDead = previous.rowCount == 1 && HolderIdentity.isDead(previous.text(0, 0))
        parameters.add(isDead ? previous.text(0, 0) : "")
        let taken = try connection.query(
            """
            UPDATE \(table) SET holder = $1, place = $2, expires_at = now() + \(Self.duration),
                fence = CASE WHEN holder = $1 THEN fence ELSE fence + 1 END
            WHERE number = \(Self.row) AND (holder IS NULL OR holder IN ($1, $3) OR expires_at < now())
            RETURNING fence
            """, parameters, [.text, .text, .text], wait
        ).check("take over the upkeep")
        number.store(taken.rowCount == 1 ? taken.integer(0, 0) : 0, ordering: .releasing)
        renewal.store(taken.rowCount == 1 ? start + Self.renewalInterval : 0, ordering: .releasing)
        return taken.rowCount == 1
    }

    /// Of ``CollectionStatement/fence``.
    var fenceParameters: Parameters {
        var parameters = Parameters()
        parameters.add(Self.row)
        parameters.add(number.load(ordering: .acquiring))
        return parameters
    }

    /// The row is not what it was: it is asked for again.
    func lose() { renewal.store(0, ordering: .releasing) }

    /// Has another daemon do it, if this one does; what fails here runs out by itself.
    func release(in table: String, _ holder: String, _ connection: Connection, _ wait: Wait) {
        guard renewal.exchange(0, ordering: .acquiringAndReleasing) != 0 else { return }
        var parameters = Parameters()
        parameters.add(holder)
        _ = try? connection.query(
            "UPDATE \(table) SET holder = NULL, expires_at = NULL WHERE number = \(Self.row) AND holder = $1",
            parameters, [.text], wait)
    }
}
