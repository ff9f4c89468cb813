import CRUDTestSupport
import Glibc

/// Load on a backend whose child is killed now and then, and on others beside it.
///
/// One thread sends at the beat of a clock, so that the load is the same whether the child is there or not; a backend
/// that is down replies at once.
struct ChildLossLoad {
    private let killed: String
    private let administrator: Connection
    private var bystanders: [Bystander]
    private var creators: [Creator]
    private var victim: pid_t?
    private var killedAt: ContinuousClock.Instant?

    private(set) var kills = 0
    /// How long after each kill a create that was sent after it was acknowledged.
    private(set) var recoveries: [Duration] = []

    private static let beat = Duration.milliseconds(4)
    private static let killInterval = Duration.milliseconds(500)

    init(on daemon: Daemon, killed: String, others: [String]) throws {
        self.killed = killed
        administrator = try daemon.connect()
        bystanders = try others.flatMap { other in
            try (0..<4).map { Bystander(try daemon.connect(), other, $0) }
        }
        creators = try (0..<4).map { Creator(try daemon.connect(), killed, $0) }
    }

    /// Keeps the load up; returns the latency of each other backend that one in a hundred requests exceeds.
    mutating func run(for duration: Duration, killing: Bool) throws -> [String: Duration] {
        let end = ContinuousClock.now + duration
        var nextBeat = ContinuousClock.now
        var nextKill = nextBeat + Self.beat
        while true {
            let now = ContinuousClock.now
            if now >= end { break }
            if now >= nextBeat {
                nextBeat = now + Self.beat
                for index in bystanders.indices { try bystanders[index].send() }
                for index in creators.indices { try creators[index].fill() }
                if killing, now >= nextKill, killedAt == nil {
                    nextKill = now + Self.killInterval
                    try kill()
                }
            }
            try takeIn(until: Deadline(ContinuousClock.now.duration(to: nextBeat)))
        }
        var latencies: [String: [Duration]] = [:]
        for index in bystanders.indices {
            latencies[bystanders[index].collection, default: []] += bystanders[index].takeLatencies()
        }
        return try latencies.mapValues { latencies in
            guard !latencies.isEmpty else { throw Failure("another backend has not replied at all") }
            return latencies.sorted()[latencies.count * 99 / 100]
        }
    }

    /// Waits until every request has its reply, and another create after the last kill acknowledged.
    mutating func drain() throws {
        let deadline = Deadline()
        while killedAt != nil || creators.contains(where: { !$0.isIdle }) || bystanders.contains(where: { !$0.isIdle })
        {
            guard !deadline.hasPassed else { throw Failure("requests have no reply: \(fates)") }
            if killedAt != nil { try creators[0].fill() }
            try takeIn(until: Deadline(Self.beat))
        }
    }

    private mutating func kill() throws {
        let pid = try ChildDaemon.awaitReady(killed, notWith: victim, administrator).pid
        guard let pid else { throw Failure("\(killed) is ready without a child") }
        Glibc.kill(pid, SIGKILL)
        victim = pid
        killedAt = .now
        kills += 1
    }

    private mutating func takeIn(until deadline: Deadline) throws {
        let connections = bystanders.map(\.connection) + creators.map(\.connection)
        let events = try Descriptor.wait(for: connections.map { (try $0.pollDescriptor, POLLIN) }, until: deadline)
        let now = ContinuousClock.now
        for index in bystanders.indices where events[index] != 0 { try bystanders[index].takeIn(at: now) }
        for index in creators.indices where events[bystanders.count + index] != 0 {
            let lastSent = try creators[index].takeIn()
            if let killedAt, let lastSent, lastSent > killedAt {
                recoveries.append(killedAt.duration(to: now))
                self.killedAt = nil
            }
        }
    }

    // MARK: Creates

    /// What has become of the creates, and of how many.
    var fates: [Creator.Fate: Int] {
        Dictionary(creators.flatMap(\.fates).map { ($0, 1) }, uniquingKeysWith: +)
    }

    /// Compares what is there with what was replied.
    func check(_ connection: Connection) throws {
        for creator in creators { try creator.check(connection) }
    }
}

/// Writes and reads one record of a backend, one request after the other, and notes how long each takes.
private struct Bystander {
    let connection: Connection
    let collection: String
    private let id: String
    private var sent = 0
    private var sentAt: ContinuousClock.Instant?
    private var latencies: [Duration] = []

    init(_ connection: Connection, _ collection: String, _ number: Int) {
        self.connection = connection
        self.collection = collection
        id = "\(number)"
    }

    var isIdle: Bool { sentAt == nil }

    mutating func send() throws {
        guard sentAt == nil else { return }
        sent += 1
        let isWrite = sent.isMultiple(of: 2) || sent == 1
        let params = Connection.params(collection, id, item: isWrite ? "\(sent)" : nil)
        let request = Connection.request(isWrite ? "record.upsert" : "record.read", params, id: "\(sent)")
        sentAt = .now
        try connection.sendFrame(request)
    }

    mutating func takeIn(at now: ContinuousClock.Instant) throws {
        try connection.takeIn()
        guard let frame = try connection.bufferedFrame() else { return }
        let reply = try Reply(JSON(parsing: frame))
        guard reply.result != nil, reply.id.integer == sent, let sentAt else {
            throw Failure("\(collection): \(reply)")
        }
        latencies.append(sentAt.duration(to: now))
        self.sentAt = nil
    }

    mutating func takeLatencies() -> [Duration] {
        defer { latencies = [] }
        return latencies
    }
}

/// Creates records, each under an id of its own, and notes what it is told of each.
struct Creator {
    /// What was replied.
    enum Fate {
        case inFlight, acknowledged, unavailable, unknown
    }

    let connection: Connection
    private let collection: String
    private let prefix: String
    private(set) var fates: [Fate] = []
    private var sentAt: [Int: ContinuousClock.Instant] = [:]

    private static let depth = 2
    private static let idsPerRead = 500

    init(_ connection: Connection, _ collection: String, _ number: Int) {
        self.connection = connection
        self.collection = collection
        prefix = "\(number)-"
    }

    var isIdle: Bool { sentAt.isEmpty }

    /// Sends as much as may be in flight.
    mutating func fill() throws {
        var bytes: [UInt8] = []
        while sentAt.count < Self.depth {
            let number = fates.count
            let params = Connection.params(collection, "\(prefix)\(number)", item: "\(number)")
            bytes += Connection.frame(Connection.request("record.create", params, id: "\(number)"))
            fates.append(.inFlight)
            sentAt[number] = .now
        }
        if !bytes.isEmpty { try connection.send(bytes) }
    }

    /// Receives replies; returns when the last that was acknowledged had been sent.
    mutating func takeIn() throws -> ContinuousClock.Instant? {
        try connection.takeIn()
        var last: ContinuousClock.Instant?
        while let frame = try connection.bufferedFrame() {
            let reply = try Reply(JSON(parsing: frame))
            guard let number = reply.id.integer, let sentAt = sentAt.removeValue(forKey: number) else {
                throw Failure("a reply to nothing: \(reply)")
            }
            switch reply.error?.name {
            case nil:
                fates[number] = .acknowledged
                last = sentAt
            case "unavailable": fates[number] = .unavailable
            case "outcome_unknown": fates[number] = .unknown
            default: throw Failure("\(reply)")
            }
        }
        return last
    }

    /// What was acknowledged is there, what was `unavailable` is not.
    func check(_ connection: Connection) throws {
        for start in stride(from: 0, to: fates.count, by: Self.idsPerRead) {
            let numbers = start..<min(start + Self.idsPerRead, fates.count)
            let reply = try connection.readMany(collection, numbers.map { "\(prefix)\($0)" })
            guard let missing = reply.result?["missing"]?.elements else { throw Failure("\(reply)") }
            let absent = Set(missing.compactMap(\.string))
            for number in numbers {
                let isThere = !absent.contains("\(prefix)\(number)")
                switch fates[number] {
                case .acknowledged where !isThere: throw Failure("\(prefix)\(number) was acknowledged and is lost")
                case .unavailable where isThere: throw Failure("\(prefix)\(number) was refused and is there")
                default: break
                }
            }
        }
    }
}
