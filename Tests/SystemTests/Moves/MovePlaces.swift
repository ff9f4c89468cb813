import CRUDTestSupport
import Glibc
import Testing

/// Where a collection of the tests of moves can be.
enum MovePlaces {
    static let all = [
        "{backend: main}", "{backend: kid, format: plist}", "{backend: files, format: xml}", "{backend: logged}",
        "{backend: other}",
    ]

    static func configuration(
        _ rule: String, backends: String = "", more: String = "", limits: String? = nil
    ) -> Configuration {
        Configuration(
            backends: """
                main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
                kid: {plugin: sqlite, isolation: process, options: {path: $DIRECTORY/kid.sqlite}}
                files: {plugin: filesystem, options: {directory: $DIRECTORY/files, fsync: false}}
                logged: {plugin: memory, options: {log: $DIRECTORY/log}}
                \(backends)
                """, collections: "c: \(rule)\n\(more)", limits: limits)
    }

    /// How many records, rounds and so on: as the environment says.
    static func number(_ name: String, default number: Int) -> Int {
        getenv(name).flatMap { Int(String(cString: $0)) } ?? number
    }
}

extension Connection {
    /// `daemon.reload` with `move: true`; returns the names of the collections that are moved.
    @discardableResult
    func reloadMoving() throws -> [String] {
        let reply = try call("daemon.reload", #"{"move":true}"#)
        guard let moves = reply.result?["moves"]?.elements else { throw Failure("no reload: \(reply)") }
        return moves.compactMap(\.string)
    }

    /// The moves that are not over.
    func moves() throws -> [JSON] { try call("daemon.status").result?["moves"]?.elements ?? [] }

    /// Waits until moves are as they are wanted, and returns them.
    @discardableResult
    func awaitMoves(
        within timeout: Duration = Deadline.timeout, until isWanted: ([JSON]) -> Bool = { $0.isEmpty }
    ) throws -> [JSON] {
        let deadline = Deadline(timeout)
        while true {
            let moves = try moves()
            if isWanted(moves) { return moves }
            guard !deadline.hasPassed else { throw Failure("the moves are \(moves.map(\.text))") }
            poll(nil, 0, 2)
        }
    }

    /// What is to be removed.
    func removals() throws -> [JSON] { try call("daemon.status").result?["removals"]?.elements ?? [] }

    /// Waits until nothing is to be removed.
    func awaitRemovals(within timeout: Duration = Deadline.timeout) throws {
        let deadline = Deadline(timeout)
        while true {
            let removals = try removals()
            if removals.isEmpty { return }
            guard !deadline.hasPassed else { throw Failure("being removed: \(removals.map(\.text))") }
        }
    }

    func describe(_ collection: String = "c") throws -> JSON {
        let reply = try call("collection.describe", #"{"collection":\#(JSON.quote(collection))}"#)
        guard let result = reply.result else { throw Failure("no description: \(reply)") }
        return result
    }

    /// Drops what the moves of a collection have left behind.
    func dropOriginals(of collection: String = "c") throws -> Bool? {
        let params = #"{"collection":\#(JSON.quote(collection)),"moved":true}"#
        let deadline = Deadline(.seconds(300))
        var hasBegun = false
        while true {
            try sendFrame(Connection.request("collection.drop", params, id: "1"))
            let reply = try receive(until: deadline)
            // Each record may be a file: it goes on after the request's time.
            guard reply.error?.name == "outcome_unknown" else {
                return (reply.result?["dropped"]?.boolean).map { $0 || hasBegun }
            }
            hasBegun = true
        }
    }
}
