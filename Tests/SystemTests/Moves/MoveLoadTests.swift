import CRUDTestSupport
import Glibc
import Testing

/// Moves while clients write and read: none of them notices.
@Suite struct MoveLoadTests {
    @Test func noRequestFailsOnTheWayThroughEveryPlace() throws {
        let records = MovePlaces.number("CRUDD_MOVE_RECORDS", default: 600)
        let loops = 2
        var configuration = MovePlaces.configuration(MovePlaces.all[0])
        configuration.loops = loops
        let daemon = try Daemon(configuration)
        let administrator = try daemon.connect()
        let load = MoveLoad(records: records, seed: 1)
        try load.connect(8, to: daemon)
        try load.fill()
        for place in MovePlaces.all.dropFirst() + [MovePlaces.all[0]] {
            var configuration = MovePlaces.configuration(place)
            configuration.loops = loops
            try daemon.installation.configure(configuration)
            #expect(try administrator.reloadMoving() == ["c"])
            let before = load.replies
            var phases: Set<String> = []
            try load.run(administrator, within: .seconds(600)) { status in
                let moves = try #require(status["moves"]?.elements)
                phases.formUnion(moves.compactMap { $0["phase"]?.string })
                return moves.isEmpty
            }
            // Behind the switch too.
            let after = load.replies + 500
            try load.run(administrator) { _ in load.replies >= after }
            try load.drain()
            #expect(load.replies > before + 500)
            #expect(phases.isSubset(of: ["pending", "copying", "switching"]), "\(phases)")
            try load.check(on: administrator)
            #expect(try administrator.dropOriginals() == true)
            _ = daemon.notifications.received
        }
        if getenv("CRUDD_MOVE_RECORDS") != nil { print("longest request: \(load.longest), \(load.replies) requests") }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// The daemon is killed at random moments: what was acknowledged is there, in one place.
    @Test func aKilledMoveContinues() throws {
        let rounds = MovePlaces.number("CRUDD_MOVE_KILLS", default: 4)
        var random = SeededGenerator(seed: UInt64(rounds))
        let load = MoveLoad(records: 300, depth: 4, seed: 5)
        var daemon = try Daemon(MovePlaces.configuration(MovePlaces.all[0]))
        try load.connect(4, to: daemon)
        try load.fill()
        for round in 1...rounds {
            let administrator = try daemon.connect()
            try daemon.installation.configure(MovePlaces.configuration(MovePlaces.all[round % MovePlaces.all.count]))
            #expect(try administrator.reloadMoving() == ["c"])
            let delay = load.replies + Int(random.next() % 400)
            try load.run(administrator) { _ in load.replies >= delay }
            try daemon.kill()
            try load.forgetInFlight()

            daemon = try daemon.restarted()
            let again = try daemon.connect()
            try again.awaitMoves()
            try load.check(on: again)
            #expect(try again.dropOriginals() == true)
            try load.check(on: again)
            try load.connect(4, to: daemon)
        }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// A child that is killed while records are copied to it, and from it.
    @Test func aKilledChildDelaysAMove() throws {
        let daemon = try Daemon(MovePlaces.configuration("{backend: main, indexes: [n]}"))
        let administrator = try daemon.connect()
        let load = MoveLoad(records: 1000, seed: 3)
        try load.connect(2, to: daemon)
        try load.fill()
        try daemon.installation.configure(MovePlaces.configuration("{backend: kid, format: plist, indexes: [n]}"))
        #expect(try administrator.reloadMoving() == ["c"])
        var killed: Set<pid_t> = []
        try load.run(administrator) { status in
            let moves = try #require(status["moves"]?.elements)
            if killed.count < 3, (moves.first?["copied"]?.integer ?? 0) > 0,
                let pid = try daemon.children.first.flatMap({ pid_t($0) }), killed.insert(pid).inserted
            {
                kill(pid, SIGKILL)
            }
            return moves.isEmpty
        }
        try load.drain()
        #expect(!killed.isEmpty)
        try load.check(on: administrator)
        #expect(try administrator.describe()["backend"]?.string == "kid")
    }
}
