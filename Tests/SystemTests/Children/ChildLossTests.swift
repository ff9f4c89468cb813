import CRUDTestSupport
import Glibc
import Testing

/// Children that are killed.
@Suite struct ChildLossTests {
    @Test(arguments: ["sqlite", "memory", "store"])
    func isNoticedWithoutAnybodyAsking(backend: String) throws {
        let daemon = try ChildDaemon([backend]).daemon
        let connection = try daemon.connect()
        #expect(try connection.create(backend, "a", "1").result != nil)
        #expect(try connection.exists(backend, "a") == true)
        for round in 1...5 {
            let pid = try #require(try ChildDaemon.status(of: backend, connection).pid)
            kill(pid, SIGKILL)
            let status = try ChildDaemon.awaitReady(backend, notWith: pid, connection)
            #expect(status.restarts == round)
            #expect(status.lastError?.contains("was killed by signal 9") == true)
            // Reads, counts and writes open the collection again.
            #expect(try connection.exists(backend, "a") == (backend != "memory" || round == 0))
            #expect(try connection.upsert(backend, "a", "\(round)").result != nil)
            #expect(try connection.item(backend, "a") == "\(round)")
        }
        #expect(try daemon.children.count == 1)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// Every write has a number of its own. What an id holds at last is the write that was acknowledged last, or one
    /// behind it whose outcome nobody knows; never one whose reply was `unavailable`.
    @Test(arguments: ["sqlite", "store"])
    func noAcknowledgedWriteIsLost(backend: String) throws {
        let daemon = try ChildDaemon(["inline", backend]).daemon
        let administrator = try daemon.connect()
        let bystander = try daemon.connect()
        var lanes = try (0..<4).map { try KilledLane(connection: daemon.connect(), collection: backend, number: $0) }
        let deadline = Deadline(.seconds(300))
        var kills = 0
        // Of the writes beside a kill the longest, and of the kills the one at which that was shortest: a busy machine
        // delays any of them.
        var shortest = Duration.seconds(3600)
        while kills < 15 {
            try #require(!deadline.hasPassed)
            let status = try ChildDaemon.awaitReady(backend, notWith: nil, administrator)
            for lane in lanes.indices { try lanes[lane].fill() }
            for lane in lanes.indices { try lanes[lane].takeIn(200, until: deadline) }
            for lane in lanes.indices { try lanes[lane].fill() }
            if let pid = status.pid { kill(pid, SIGKILL) }
            kills += 1
            var longest = Duration.zero
            for number in 0..<20 {
                let start = ContinuousClock.now
                #expect(try bystander.upsert("inline", "\(number)", "1").result != nil)
                longest = max(longest, start.duration(to: .now))
            }
            shortest = min(shortest, longest)
        }
        for lane in lanes.indices { try lanes[lane].drain(until: deadline) }
        #expect(shortest < .seconds(1), "who asks another backend waits")
        #expect(lanes.reduce(0) { $0 + $1.acknowledged } > 0)
        #expect(lanes.reduce(0) { $0 + $1.withoutReply } > 0, "nothing was in flight when the child was killed")
        try ChildDaemon.awaitReady(backend, notWith: nil, administrator)
        for lane in lanes { try lane.check(administrator) }
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}

/// A connection that pipelines writes, and what it knows of them.
private struct KilledLane {
    private struct History {
        /// The last write that was acknowledged, and those sent behind it whose outcome is unknown.
        var allowed: Set<Int> = []
    }

    let connection: Connection
    let collection: String
    let number: Int
    private var histories: [String: History] = [:]
    private var inFlight: [Int: String] = [:]
    private var next = 1
    private(set) var acknowledged = 0
    private(set) var withoutReply = 0

    init(connection: Connection, collection: String, number: Int) {
        self.connection = connection
        self.collection = collection
        self.number = number
    }

    mutating func fill() throws {
        var bytes: [UInt8] = []
        while inFlight.count < 64 {
            let id = "\(number)/\(next % 10)"
            let params = Connection.params(collection, id, item: "\(next)")
            bytes += Connection.frame(Connection.request("record.upsert", params, id: "\(next)"))
            inFlight[next] = id
            next += 1
        }
        try connection.send(bytes)
    }

    /// Takes replies in, in the order of the requests, and sends further requests.
    mutating func takeIn(_ count: Int, until deadline: Deadline) throws {
        for _ in 0..<count {
            let reply = try connection.receive(until: deadline)
            try take(reply)
            if inFlight.count < 32 { try fill() }
        }
    }

    mutating func drain(until deadline: Deadline) throws {
        while !inFlight.isEmpty {
            let reply = try connection.receive(until: deadline)
            try take(reply)
        }
    }

    private mutating func take(_ reply: Reply) throws {
        let write = try #require(reply.id.integer)
        let sent = inFlight.removeValue(forKey: write)
        let id = try #require(sent, "a reply to nothing: \(reply)")
        switch reply.error?.name {
        case nil:
            histories[id, default: History()].allowed = [write]
            acknowledged += 1
        case "outcome_unknown":
            histories[id, default: History()].allowed.insert(write)
            withoutReply += 1
        case "unavailable": withoutReply += 1
        case let other: Issue.record("\(other ?? "")")
        }
    }

    /// Compares every record with what may be there.
    func check(_ connection: Connection) throws {
        for (id, history) in histories {
            let stored = try connection.item(collection, id).flatMap { Int($0) }
            #expect(stored.map(history.allowed.contains) == true, "\(id): \(stored ?? -1), allowed \(history.allowed)")
        }
    }
}
