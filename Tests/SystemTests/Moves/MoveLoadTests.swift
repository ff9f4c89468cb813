import CRUDTestSupport
import Glibc
import Testing

/// Moves while clients write and read: none of them notices.
@Suite struct MoveLoadTests {
    /// How long a request may take while its collection is switched, and how long requests are held for that.
    private static let longestRequest = BuildProducts.areOptimized ? Duration.milliseconds(250) : .seconds(20)
    private static let longestWait = BuildProducts.areOptimized ? Duration.milliseconds(50) : .seconds(20)

    /// How long the daemon says that it has held requests for the switches so far.
    private func waits(of daemon: Daemon) -> [Duration] {
        daemon.log.split(separator: "\n").filter { $0.contains("have waited") }.compactMap { line in
            line.split(separator: " ").dropLast().last.flatMap { Double($0) }.map { .seconds($0) }
        }
    }

    @Test func noRequestFailsOnTheWayThroughEveryPlace() throws {
        let records = MovePlaces.number("CRUDD_MOVE_RECORDS", default: 600)
        let cluster = "cluster: {plugin: postgresql, options: \(PostgreSQLServer.options("moved"))}"
        let home = "{backend: main, indexes: [n]}"
        let way = [
            "{backend: kid, format: plist, indexes: [n]}", "{backend: files, format: xml}",
            "{backend: logged, indexes: [n]}", "{backend: cluster, indexes: [n]}", home,
        ]
        func configuration(_ place: String) -> Configuration {
            var configuration = MovePlaces.configuration(place, backends: cluster)
            configuration.loops = 2
            return configuration
        }
        let daemon = try Daemon(configuration(home))
        let administrator = try daemon.connect()
        let load = MoveLoad(records: records, seed: 1)
        try load.connect(8, to: daemon)
        try load.fill()
        for (former, place) in zip([home] + way, way) {
            load.mayBeUnavailable = [former, place].contains { $0.contains("cluster") }
            try daemon.installation.configure(configuration(place))
            #expect(try administrator.reloadMoving() == ["c"])
            let (before, start) = (load.replies, ContinuousClock.now)
            var phases: Set<String> = []
            var longest = Duration.zero
            try load.run(administrator, within: .seconds(600)) { status in
                let moves = try #require(status["moves"]?.elements)
                phases.formUnion(moves.compactMap { $0["phase"]?.string })
                if moves.first?["phase"]?.string == "copying" { longest = max(longest, load.takeLongest()) }
                return moves.isEmpty
            }
            let duration = start.duration(to: .now)
            let longestInSwitch = load.takeLongest()
            #expect(longestInSwitch <= Self.longestRequest, "\(place)")
            // Behind the switch too.
            let after = load.replies + 500
            try load.run(administrator) { _ in load.replies >= after }
            try load.drain()
            #expect(load.replies > before + 500)
            #expect(phases.isSubset(of: ["pending", "copying", "switching"]), "\(phases)")
            try load.check(on: administrator)
            #expect(try administrator.dropOriginals() == true)
            _ = daemon.notifications.received
            if getenv("CRUDD_MOVE_RECORDS") != nil {
                print("\(place): \(duration), \(load.replies - before) requests, longest", terminator: " ")
                print("while copying \(longest), in the switch \(longestInSwitch)")
                print("requests were held for \(waits(of: daemon))")
            }
        }
        #expect(waits(of: daemon).count >= way.count && waits(of: daemon).allSatisfy { $0 <= Self.longestWait })
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// Who is killed at random moments of moves, and where the collection is meanwhile.
    enum Victim: String, CaseIterable {
        case daemon, child, server

        fileprivate var places: [String] {
            switch self {
            case .daemon: MovePlaces.all
            case .child: ["{backend: main}", "{backend: kid, format: plist}"]
            case .server: ["{backend: main}", "{backend: cluster}"]
            }
        }
    }

    /// What was acknowledged is there, in one place.
    @Test(arguments: Victim.allCases)
    func aKilledMoveContinues(victim: Victim) throws {
        let rounds = MovePlaces.number("CRUDD_MOVE_KILLS", default: 4)
        var random = SeededGenerator(seed: UInt64(rounds))
        let server = victim == .server ? try PostgreSQLServer() : nil
        let cluster = server.map { #"cluster: {plugin: postgresql, options: {connection: "\#($0.connection)"}}"# } ?? ""
        let load = MoveLoad(records: 300, depth: 4, seed: 5)
        var daemon = try Daemon(MovePlaces.configuration(victim.places[0], backends: cluster))
        try load.connect(4, to: daemon)
        try load.fill()
        for round in 1...rounds {
            var administrator = try daemon.connect()
            let place = victim.places[round % victim.places.count]
            try daemon.installation.configure(MovePlaces.configuration(place, backends: cluster))
            #expect(try administrator.reloadMoving() == ["c"])
            let delay = load.replies + Int(random.next() % 400)
            try load.run(administrator) { _ in load.replies >= delay }
            switch victim {
            case .daemon:
                try daemon.kill()
                try load.forgetInFlight()
                daemon = try daemon.restarted()
                administrator = try daemon.connect()
            case .child:
                if let child = try daemon.children.first.flatMap({ pid_t($0) }) { kill(child, SIGKILL) }
                try load.drainAfterLoss()
            case .server:
                try server?.kill()
                try server?.start()
                try load.drainAfterLoss()
            }
            try administrator.awaitMoves()
            // What was killed may still be starting.
            let deadline = Deadline()
            while try administrator.exists("c", "none") == nil { try #require(!deadline.hasPassed) }
            try load.check(on: administrator)
            while try administrator.dropOriginals() != true { try #require(!deadline.hasPassed) }
            try load.check(on: administrator)
            if victim == .daemon { try load.connect(4, to: daemon) }
        }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
        // More lines than reloads: so many moves were continued.
        if getenv("CRUDD_MOVE_KILLS") != nil {
            print("\(victim): \(daemon.log.ranges(of: "are to be copied").count) copies in \(rounds) rounds")
        }
    }

    /// Has a daemon begin to move the load's records.
    private func beginMove(
        _ old: String, _ new: String, under load: MoveLoad
    ) throws -> (daemon: Daemon, administrator: Connection) {
        let daemon = try Daemon(MovePlaces.configuration(old))
        let administrator = try daemon.connect()
        try load.connect(2, to: daemon)
        try load.fill()
        try daemon.installation.configure(MovePlaces.configuration(new))
        #expect(try administrator.reloadMoving() == ["c"])
        return (daemon, administrator)
    }

    /// A reload of the old file in the middle of a copy.
    @Test func aReloadBackInTheMiddleCancels() throws {
        let load = MoveLoad(records: 4000, seed: 9)
        let (daemon, administrator) = try beginMove("{backend: main}", "{backend: files, format: xml}", under: load)
        try load.run(administrator) { ($0["moves"]?.elements?.first?["copied"]?.integer ?? 0) > 0 }
        try daemon.installation.configure(MovePlaces.configuration("{backend: main}"))
        #expect(try !administrator.reload().isEmpty)
        try load.run(administrator) { try #require($0["moves"]?.elements).isEmpty }
        try load.drain()
        try load.check(on: administrator)
        #expect(try administrator.describe()["backend"]?.string == "main")
        try administrator.awaitRemovals()
        #expect((try? Files.names(in: "\(daemon.installation.path)/files/c").count) ?? 0 == 0, "no copies stay")
    }

    /// A child that is killed while records are copied to it, and from it.
    @Test func aKilledChildDelaysAMove() throws {
        let load = MoveLoad(records: 1000, seed: 3)
        let (daemon, administrator) = try beginMove(
            "{backend: main, indexes: [n]}", "{backend: kid, format: plist, indexes: [n]}", under: load)
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
