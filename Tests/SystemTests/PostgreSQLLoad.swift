import CRUDTestSupport
import Glibc
import Testing

/// Load on a collection of a PostgreSQL database, at the beat of a clock, whatever becomes of the server.
struct PostgreSQLLoad {
    private let collection: String
    private let reader: Connection
    private var creators: [Creator]
    private var readAt: ContinuousClock.Instant?
    /// How long the slowest read took since this was reset.
    var slowestRead = Duration.zero
    /// When a create was sent that was acknowledged last.
    private(set) var lastAcknowledged: ContinuousClock.Instant?

    private static let beat = Duration.milliseconds(4)
    private static let timeout = Duration.seconds(30)

    init(on daemon: Daemon, _ collection: String) throws {
        self.collection = collection
        reader = try daemon.connect()
        creators = try (0..<4).map { Creator(try daemon.connect(), collection, $0) }
    }

    /// Keeps the load up for so long, or until `condition` holds.
    mutating func run(
        atMost duration: Duration, until condition: (PostgreSQLLoad) -> Bool = { _ in false }
    ) throws {
        let end = ContinuousClock.now + duration
        while ContinuousClock.now < end, !condition(self) {
            let next = ContinuousClock.now + Self.beat
            for index in creators.indices { try creators[index].fill() }
            try read()
            while ContinuousClock.now < next { try takeIn(until: Deadline(ContinuousClock.now.duration(to: next))) }
        }
    }

    /// Waits until every request has its reply.
    mutating func drain() throws {
        let deadline = Deadline(Self.timeout)
        while readAt != nil || creators.contains(where: { !$0.isIdle }) {
            guard !deadline.hasPassed else { throw Failure("requests have no reply: \(fates)") }
            try takeIn(until: Deadline(Self.beat))
        }
    }

    private mutating func read() throws {
        guard readAt == nil else { return }
        readAt = .now
        try reader.sendFrame(Connection.request("record.read", Connection.params(collection, "none"), id: "0"))
    }

    private mutating func takeIn(until deadline: Deadline) throws {
        let connections = creators.map(\.connection) + [reader]
        let events = try Descriptor.wait(for: connections.map { (try $0.pollDescriptor, POLLIN) }, until: deadline)
        for index in creators.indices where events[index] != 0 {
            if let sent = try creators[index].takeIn() { lastAcknowledged = max(sent, lastAcknowledged ?? sent) }
        }
        guard events[creators.count] != 0 else { return }
        try reader.takeIn()
        guard let frame = try reader.bufferedFrame(), let readAt else { return }
        let reply = try Reply(JSON(parsing: frame))
        guard ["record_not_found", "unavailable"].contains(reply.error?.name) else { throw Failure("\(reply)") }
        slowestRead = max(slowestRead, readAt.duration(to: .now))
        self.readAt = nil
    }

    /// What has become of the creates, and of how many.
    var fates: [Creator.Fate: Int] {
        Dictionary(creators.flatMap(\.fates).map { ($0, 1) }, uniquingKeysWith: +)
    }

    /// Compares what is there with what was replied.
    func check(_ connection: Connection) throws {
        for creator in creators { try creator.check(connection) }
    }
}
