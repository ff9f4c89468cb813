import CRUDTestSupport
import Testing

/// The daemon is killed at each call that writes where collections are, or at some by which records are copied and
/// removed, while an administrator changes that; or one of the latter fails. Whatever call it is, the next start is not
/// refused, every acknowledged record is served from one place, and nothing that was dropped comes back.
@Suite struct PlacementCallTests {
    /// How a session of an administrator goes on after three collections have got records.
    enum Change: String, CaseIterable, Sendable {
        case move, cancel, dropInMove, dropOriginals
    }

    enum Fault: String, Sendable {
        case killBefore, killAfter, failure
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let change: Change
        let fault: Fault
        /// At calls on which files, and at which of them.
        var files = "collections.jsonl"
        static let databases = ".sqlite"
        var calls = Array(1...12)
        var testDescription: String { "\(change.rawValue), \(fault.rawValue), calls on \(files)" }
    }

    static let cases = Change.allCases.flatMap { change in
        [Fault.killBefore, .killAfter].map { Case(change: change, fault: $0) }
            + [
                // SQLite's writes are not counted, its syncs are.
                Case(change: change, fault: .killBefore, files: Case.databases, calls: [1, 2, 3, 4, 6, 9, 13]),
                Case(
                    change: change, fault: .failure, files: Case.databases,
                    calls: [1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 28, 36, 46]),
            ]
    }

    private static func configuration(_ backend: String) -> Configuration {
        Configuration(
            backends: """
                main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
                """, collections: "a: {backend: \(backend), move: true}\nb: {backend: \(backend), move: true}")
    }

    @Test(arguments: cases)
    func nothingIsLost(at fault: Case) throws {
        for number in fault.calls {
            let hasHappened = try session(fault, number)
            // How many there are on databases differs from run to run.
            if !hasHappened, fault.files != Case.databases { break }
        }
    }

    /// - Returns: whether there was such a call.
    private func session(_ fault: Case, _ number: Int) throws -> Bool {
        let disk = try FaultyDisk()
        let installation = try Installation(Self.configuration("main"))
        var daemon = try Daemon(on: installation, environment: disk.variables)
        var connection = try daemon.connect()
        for name in ["a", "b"] {
            for id in 0..<20 { #expect(try connection.create(name, "\(id)", "\(id)").result != nil) }
        }
        var isDropped = false
        switch fault.fault {
        case .killBefore, .killAfter:
            try disk.kill(atCall: number, of: fault.files, isAfter: fault.fault == .killAfter)
        case .failure: try disk.fail(call: number, of: fault.files)
        }
        do {
            try change(fault.change, installation, connection, &isDropped)
        } catch is Failure {
            // The connection is lost, or the reload was refused.
        }
        let hasHappened = !disk.log.isEmpty
        if fault.fault == .failure {
            // What has failed is tried again.
            try connection.awaitMoves()
            try connection.awaitRemovals()
            for id in 0..<20 { #expect(try connection.item("b", "\(id)") == "\(id)", "\(fault) \(number)") }
        }
        try disk.heal()
        try daemon.kill()

        // The file is the one that was written last: it may or may not have been in force.
        daemon = try Daemon(on: installation)
        connection = try daemon.connect()
        try connection.awaitMoves()
        try connection.awaitRemovals()
        #expect(try connection.describe("b")["count"]?.integer == 20, "\(fault) \(number)")
        let count = try connection.describe("a")["count"]?.integer
        #expect(count == (isDropped ? 0 : 20) || fault.change == .dropInMove && count == 0, "\(fault) \(number)")
        for id in 0..<20 { #expect(try connection.item("b", "\(id)") == "\(id)") }
        // Every later move succeeds: nothing is left that the catalog does not know.
        for backend in ["main", "other", "main"] {
            for name in ["a", "b"] { _ = try connection.dropOriginals(of: name) }
            try installation.configure(Self.configuration(backend))
            try connection.reloadMoving()
            try connection.awaitMoves()
            #expect(try connection.describe("b")["backend"]?.string == backend)
            #expect(try connection.describe("b")["count"]?.integer == 20, "\(fault) \(number)")
            #expect(try connection.describe("a")["count"]?.integer == count)
        }
        #expect(try daemon.stop() == .exited(0))
        return hasHappened
    }

    private func change(
        _ change: Change, _ installation: Installation, _ connection: Connection, _ isDropped: inout Bool
    ) throws {
        try installation.configure(Self.configuration("other"))
        try connection.reloadMoving()
        switch change {
        case .move: try connection.awaitMoves()
        case .cancel:
            try installation.configure(Self.configuration("main"))
            let reply = try connection.call("daemon.reload")
            // The move may be over: then the originals are older.
            if reply.error != nil { try installation.configure(Self.configuration("other")) }
            try connection.awaitRemovals()
        case .dropInMove:
            let reply = try connection.call("collection.drop", #"{"collection":"a"}"#)
            isDropped = reply.result?["dropped"]?.boolean == true
            try connection.awaitMoves()
        case .dropOriginals:
            try connection.awaitMoves()
            for name in ["a", "b"] { _ = try connection.dropOriginals(of: name) }
        }
    }
}
