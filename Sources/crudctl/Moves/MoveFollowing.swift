import CRUDClient
import CRUDJSON
import CRUDModel
import CRUDWire
import Glibc

/// Follows all moves of the daemon until they are over, with a line for each on the terminal.
///
/// `daemon.status` lists moves that are not over. One that is not listed any more has ended: the collection is in its
/// new place, or where it was if somebody has cancelled the move. One that has failed stays listed and does not
/// continue. One that is suspended is retried by the daemon, but in most cases fails until somebody has repaired
/// a backend; so when nothing else is left, following ends soon.
struct MoveFollowing {
    private struct Followed {
        let name: String
        /// Its status when it was listed last.
        var status: MoveStatus?
        var isOver = false
        /// How many records the collection has now that all moves are over, if that is known.
        var records: Int?
    }

    /// Time between two calls.
    private static let microseconds: UInt32 = 200_000
    /// After so many calls that have found nothing but suspended moves following ends: a backend that has merely been
    /// restarted is there again by then.
    private static let maximumStuck = 10

    private let client: Client
    private let display = ProgressDisplay.onTerminal()
    private var moves: [Followed]

    /// - Parameter names: the collections whose moves have just begun; those of earlier ones are found out.
    init(_ names: [String], _ client: Client) {
        self.client = client
        moves = names.map { Followed(name: $0) }
    }

    /// Waits until no move continues.
    ///
    /// - Returns: the error of moves that are suspended.
    /// - Throws: `unsupported` if a move has failed, `unavailable` if one was cancelled.
    mutating func run() async throws -> CRUDError? {
        defer { display?.end() }
        var stuck = 0
        while true {
            try await update()
            display?.show(moves.map(Self.line))
            let rest = moves.filter { !$0.isOver && $0.status?.hasFailed != true }
            stuck = rest.allSatisfy { $0.status?.isSuspended == true } ? stuck + 1 : 0
            if rest.isEmpty || stuck == Self.maximumStuck { break }
            // Task.sleep would start threads of libdispatch. Nothing else runs on this thread.
            usleep(Self.microseconds)
        }
        if let failed = moves.first(where: { $0.status?.hasFailed == true })?.status {
            throw CRUDError(
                .unsupported, "\(Self.title(failed)) has failed: \(failed.reason); the collection stays where it is")
        }
        for index in moves.indices where moves[index].isOver { try await check(index) }
        display?.show(moves.map(Self.line))
        guard let suspended = moves.first(where: { !$0.isOver })?.status else { return nil }
        return CRUDError(
            .unavailable, "\(Self.title(suspended)) is suspended: \(suspended.reason); the daemon retries it")
    }

    /// Asks the daemon how far the moves are.
    private mutating func update() async throws {
        let reply = try await client.call("daemon.status", json: Array("{}".utf8))
        guard let list = ResultObject(reply)?.elements("moves") else {
            throw CRUDError(.internalError, "the daemon's status has no moves")
        }
        let listed = list.compactMap { ResultObject(Array($0)).flatMap(MoveStatus.init) }
        // By code point, as names are compared.
        let byName = Dictionary(listed.map { (Array($0.collection.utf8), $0) }, uniquingKeysWith: { $1 })
        for index in moves.indices where !moves[index].isOver {
            let status = byName[Array(moves[index].name.utf8)]
            moves[index].status = status ?? moves[index].status
            moves[index].isOver = status == nil
        }
        let known = Set(moves.map { Array($0.name.utf8) })
        for status in listed where !known.contains(Array(status.collection.utf8)) {
            moves.append(Followed(name: status.collection, status: status))
        }
    }

    /// Checks that a move that is over was not cancelled, as far as that is known, and finds out how many records the
    /// collection has.
    private mutating func check(_ index: Int) async throws {
        guard let status = moves[index].status else { return }
        var params = JSONWriter()
        params.object { $0.member("collection", moves[index].name) }
        let description = ResultObject(try await client.call("collection.describe", json: params.bytes))
        moves[index].records = description?.integer("count")
        guard description.flatMap(MoveStatus.place) != status.target else { return }
        throw CRUDError(.unavailable, "\(Self.title(status)) was cancelled; the collection stays where it is")
    }

    private static func title(_ status: MoveStatus) -> String {
        "the move of collection \(quoted(status.collection.utf8)) to \(status.target)"
    }

    private static func line(_ move: Followed) -> ProgressLine {
        guard let status = move.status else {
            return ProgressLine(name: move.name, phase: move.isOver ? "moved" : "pending", records: 0, fraction: nil)
        }
        guard move.isOver else {
            // It is 0 until they are counted.
            let total = status.total > 0 ? status.total : nil
            return ProgressLine(name: move.name, phase: status.phase, records: status.copied, total: total)
        }
        // One that was over before it had counted its records.
        let total = status.total > 0 ? status.total : move.records ?? 0
        return ProgressLine(name: move.name, phase: "moved", records: total, total: total)
    }
}
