import CRUDTestSupport
import CRUDThreads
import Glibc
import Synchronization
import Testing

/// Servers, sessions and the daemon that are stopped in any order while clients check what they are told.
@Suite struct PostgreSQLStormTests {
    /// What one client does: it writes and reads a few records, one request after the other.
    private final class Client: Sendable {
        static let records = 3
        private let number: Int
        private let connection: Mutex<Connection>
        private let histories = Mutex([RecordHistory](repeating: RecordHistory(), count: records))
        private let failure = Mutex<String?>(nil)
        private let acknowledgedCount = Atomic(0)

        init(_ number: Int, _ daemon: Daemon) throws {
            self.number = number
            connection = Mutex(try daemon.connect())
        }

        var acknowledged: Int { acknowledgedCount.load(ordering: .acquiring) }
        var result: (histories: [RecordHistory], failure: String?) {
            (histories.withLock { $0 }, failure.withLock { $0 })
        }

        func run(until isOver: () -> Bool) {
            var generator = SeededGenerator(seed: UInt64(number))
            // No two clients write the same value.
            var value = number
            do {
                while !isOver() {
                    let record = Int.random(in: 0..<Self.records, using: &generator)
                    if Bool.random(using: &generator) {
                        value += 100
                        try write(value, record)
                    } else {
                        try read(record)
                    }
                }
            } catch {
                failure.withLock { $0 = "\(error)" }
            }
        }

        private static var now: Int64 {
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC, &time)
            return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
        }

        private func write(_ value: Int, _ record: Int) throws {
            let begin = Self.now
            let reply = try connection.withLock { try $0.upsert("c", "\(record)", "\(value)") }
            let end = Self.now
            let outcome: RecordHistory.Outcome
            switch reply.error?.name {
            case nil: outcome = .done
            case "unavailable": outcome = .refused
            case "outcome_unknown": outcome = .unknown
            default: throw Failure("\(reply)")
            }
            if outcome == .done { acknowledgedCount.add(1, ordering: .releasing) }
            if outcome == .refused { poll(nil, 0, 5) }
            histories.withLock { $0[record].write(value, from: begin, to: end, outcome) }
        }

        private func read(_ record: Int) throws {
            let begin = Self.now
            let reply = try connection.withLock { try $0.read("c", "\(record)") }
            let end = Self.now
            let value: Int
            switch reply.error?.name {
            case nil: value = reply.result?["item"]?.integer ?? -1
            case "record_not_found": value = RecordHistory.absent
            case "unavailable":
                poll(nil, 0, 5)
                return
            default: throw Failure("\(reply)")
            }
            histories.withLock { $0[record].read(value, from: begin, to: end) }
        }
    }

    private static let clientCount = 3

    /// Waits until every client has been acknowledged some more writes.
    private func recover(_ clients: [Client], _ daemon: Daemon, after what: String) throws {
        let goals = clients.map { $0.acknowledged + 5 }
        let deadline = Deadline(.seconds(40))
        while zip(clients, goals).contains(where: { $0.acknowledged < $1 }) {
            guard !deadline.hasPassed else { throw Failure("no writes after \(what)\n\(daemon.log)") }
            poll(nil, 0, 10)
        }
    }

    @Test(arguments: ["", "cache: false, "])
    func nothingIsLostOrStale(option: String) throws {
        let cluster = try PostgreSQLCluster()
        let daemon = try Daemon(
            Configuration(
                backends: #"main: {plugin: postgresql, \#(option)options: {connection: "\#(cluster.connection)"}}"#))
        let clients = try (0..<Self.clientCount).map { try Client($0 + 1, daemon) }
        let isOver = Atomic(false)
        let threads = try clients.map { client in
            try Thread(named: "client") { client.run { isOver.load(ordering: .acquiring) } }
        }
        defer {
            isOver.store(true, ordering: .releasing)
            for thread in threads { thread.join() }
        }
        try recover(clients, daemon, after: "the start")
        try disturb(cluster, 0, clients, daemon)
        // The primary is frozen while its successor is chosen, and thaws behind its back.
        let thaw = try cluster[0].freeze()
        defer { thaw() }
        let winner = try cluster.promote()
        try recover(clients, daemon, after: "a promotion")
        thaw()
        try recover(clients, daemon, after: "the old primary is back")
        try disturb(cluster, winner, clients, daemon)
        try cluster[winner].kill()
        try cluster.startPrimary(winner)
        try recover(clients, daemon, after: "a restart")
        isOver.store(true, ordering: .releasing)
        for thread in threads { thread.join() }
        var histories = [RecordHistory](repeating: RecordHistory(), count: Client.records)
        for client in clients {
            let (own, failure) = client.result
            #expect(failure == nil)
            for record in histories.indices { histories[record].merge(own[record]) }
        }
        for history in histories { #expect(history.violation == nil) }
        #expect(!daemon.log.contains("internal_error"))
    }

    /// What happens to sessions, to the daemon and to the servers' willingness, without another primary.
    private func disturb(_ cluster: PostgreSQLCluster, _ primary: Int, _ clients: [Client], _ daemon: Daemon) throws {
        let sessions = "FROM pg_stat_activity WHERE application_name = 'crudd'"
        for function in ["pg_terminate_backend", "pg_cancel_backend"] {
            for _ in 0..<10 {
                _ = try cluster[primary].query("SELECT \(function)(pid) \(sessions) ORDER BY random() LIMIT 2")
                poll(nil, 0, 20)
            }
            try recover(clients, daemon, after: function)
        }
        _ = try cluster[primary].query("ALTER SYSTEM SET default_transaction_read_only = on")
        _ = try cluster[primary].query("SELECT pg_reload_conf()")
        poll(nil, 0, 500)
        _ = try cluster[primary].query(
            "ALTER SYSTEM RESET default_transaction_read_only")
        _ = try cluster[primary].query("SELECT pg_reload_conf()")
        try recover(clients, daemon, after: "a demotion")
        daemon.process.signal(SIGSTOP)
        poll(nil, 0, 300)
        daemon.process.signal(SIGCONT)
        try recover(clients, daemon, after: "a frozen daemon")
    }
}
