import CRUDTestSupport
import Glibc
import Testing

/// Several connections that create, read, patch, replace and delete records of one collection, each with ids of its
/// own, and check every reply: a record that is missing, old or torn is noticed at once.
final class MoveLoad {
    /// What an id holds: the number of its item; nil: there is no record.
    private struct History {
        /// After the last write that was acknowledged.
        var settled: Int?
        /// After each write that has no reply yet.
        var pending: [Int?] = []
        /// Of the last write that was acknowledged.
        var revision: String?

        var last: Int? { pending.last ?? settled }
    }

    private struct Request {
        var id: Int
        var method: String
        /// What the id must hold then.
        var number: Int?
        var sent: ContinuousClock.Instant
    }

    private struct Lane {
        var connection: Connection
        var inFlight: [Int: Request] = [:]
    }

    private let collection: String
    private let records: Int
    private let depth: Int
    private var histories: [History]
    private var lanes: [Lane] = []
    private var random: SeededGenerator
    private var nextNumber = 0
    /// Whether requests may fail.
    private var isAfterLoss = false
    /// Whether the storage may be unavailable for a while: a server that a busy machine keeps from replying in time.
    var mayBeUnavailable = false
    private var hasBeenUnavailable = false
    private(set) var replies = 0
    private var longest = Duration.zero

    init(_ collection: String = "c", records: Int, depth: Int = 8, seed: UInt64) {
        self.collection = collection
        self.records = records
        self.depth = depth
        histories = Array(repeating: History(), count: records)
        random = SeededGenerator(seed: seed)
    }

    static func id(_ number: Int) -> String { "r\(number)/é" }

    /// What fits into every format.
    private static func item(_ number: Int) -> String {
        #"{"n":\#(number),"text":"\#(String(repeating: "\(number) ", count: 4))"}"#
    }

    // MARK: Running

    func connect(_ count: Int, to daemon: Daemon) throws {
        lanes = try (0..<count).map { _ in Lane(connection: try daemon.connect()) }
    }

    /// Creates every record.
    func fill() throws {
        for start in stride(from: 0, to: records, by: 500) {
            let ids = start..<min(start + 500, records)
            let requests = ids.map { id in
                nextNumber += 1
                histories[id].settled = nextNumber
                return ("record.create", Connection.params(collection, Self.id(id), item: Self.item(nextNumber)))
            }
            for (id, reply) in zip(ids, try lanes[0].connection.pipeline(requests)) {
                histories[id].revision = try #require(reply.result?["revision"]?.string, "\(reply)")
            }
        }
    }

    /// Sends requests and checks replies until an administrator's call has the result that is wanted.
    ///
    /// - Parameter isOver: asked with the result of `daemon.status`, again and again.
    func run(
        _ administrator: Connection, within timeout: Duration = .seconds(600), until isOver: (JSON) throws -> Bool
    ) throws {
        let deadline = Deadline(timeout)
        try administrator.sendFrame(Connection.request("daemon.status", id: "0"))
        while true {
            for lane in lanes.indices { try send(lane) }
            let connections = [administrator] + lanes.map(\.connection)
            let events = try Descriptor.wait(
                for: try connections.map { (try $0.pollDescriptor, POLLIN) }, until: deadline)
            for lane in lanes.indices where events[lane + 1] != 0 { try receive(lane) }
            if hasBeenUnavailable { try drain() }
            try #require(!deadline.hasPassed, "the move takes long")
            guard events[0] != 0 else { continue }
            if try isOver(try #require(administrator.receive().result)) { return }
            try administrator.sendFrame(Connection.request("daemon.status", id: "0"))
        }
    }

    /// Waits for all replies.
    func drain() throws {
        let deadline = Deadline()
        for lane in lanes.indices {
            while !lanes[lane].inFlight.isEmpty {
                try #require(
                    try Descriptor.wait(for: [(lanes[lane].connection.pollDescriptor, POLLIN)], until: deadline)[0] != 0
                )
                try receive(lane)
            }
        }
        guard hasBeenUnavailable else { return }
        hasBeenUnavailable = false
        let connection = lanes[0].connection
        while try connection.exists(collection, "none") == nil { try #require(!deadline.hasPassed) }
        try check(on: connection)
    }

    /// The longest that a request has taken since the last call.
    func takeLongest() -> Duration {
        defer { longest = .zero }
        return longest
    }

    private func send(_ lane: Int) throws {
        var bytes: [UInt8] = []
        while lanes[lane].inFlight.count < depth {
            // Each id belongs to one connection, so that its requests have an order.
            let id = Int(random.next() % UInt64(records / lanes.count)) * lanes.count + lane
            nextNumber += 1
            let (method, item) = choose(for: id)
            var params = Connection.params(collection, Self.id(id), item: item)
            if method == "record.patch" {
                params = Connection.params(collection, Self.id(id), more: ["patch": Self.item(nextNumber)])
            }
            let isArray = method == "record.upsert" && random.next() % 4 == 0
            let request = Connection.request(method, params, id: "\(nextNumber)")
            bytes += Connection.frame(isArray ? "[\(request)]" : request)
            if method != "record.read" { histories[id].pending.append(method == "record.delete" ? nil : nextNumber) }
            lanes[lane].inFlight[nextNumber] = Request(
                id: id, method: method, number: histories[id].last, sent: .now)
        }
        if !bytes.isEmpty { try lanes[lane].connection.send(bytes) }
    }

    private func choose(for id: Int) -> (method: String, item: String?) {
        guard histories[id].last != nil else {
            return random.next() % 3 == 0 ? ("record.read", nil) : ("record.create", Self.item(nextNumber))
        }
        switch random.next() % 10 {
        case 0..<5: return ("record.read", nil)
        case 5: return ("record.delete", nil)
        case 6: return ("record.update", Self.item(nextNumber))
        case 7: return ("record.patch", nil)
        default: return ("record.upsert", Self.item(nextNumber))
        }
    }

    private func receive(_ lane: Int) throws {
        try lanes[lane].connection.takeIn()
        while let frame = try lanes[lane].connection.bufferedFrame() {
            let json = try JSON(parsing: frame)
            for reply in try (json.elements ?? [json]).map(Reply.init) { try check(reply, lane) }
        }
    }

    private func check(_ reply: Reply, _ lane: Int) throws {
        let known = lanes[lane].inFlight.removeValue(forKey: reply.id.integer ?? 0)
        let request = try #require(known, "a reply to nothing: \(reply)")
        longest = max(longest, request.sent.duration(to: .now))
        replies += 1
        if mayBeUnavailable, ["unavailable", "outcome_unknown"].contains(reply.error?.name) {
            hasBeenUnavailable = true
        }
        if isAfterLoss || hasBeenUnavailable { return try checkAfterLoss(reply, request) }
        guard request.method == "record.read" else {
            try #require(reply.result != nil, "\(request): \(reply)")
            histories[request.id].settled = histories[request.id].pending.removeFirst()
            histories[request.id].revision = reply.result?["revision"]?.string
            return
        }
        if let number = request.number {
            try #require(reply.result?["item"]?.means(JSON(parsing: Self.item(number))) == true, "\(request): \(reply)")
        } else {
            try #require(reply.error?.name == "record_not_found", "\(request): \(reply)")
        }
    }

    /// Waits for all replies, of which those to requests that a killed child or server had may be errors: such a write
    /// may have been applied.
    func drainAfterLoss() throws {
        isAfterLoss = true
        defer { isAfterLoss = false }
        try drain()
    }

    private func checkAfterLoss(_ reply: Reply, _ request: Request) throws {
        if let error = reply.error {
            // The last two: a write before this one has failed, or has not.
            let names = ["unavailable", "outcome_unknown", "record_not_found", "record_exists"]
            try #require(names.contains(error.name), "\(request): \(reply)")
        } else if request.method != "record.read" {
            let number = request.method == "record.delete" ? nil : request.number
            let position = try #require(histories[request.id].pending.firstIndex(of: number))
            histories[request.id].settled = number
            histories[request.id].pending.removeSubrange(...position)
            histories[request.id].revision = reply.result?["revision"]?.string
        }
    }

    // MARK: Checking

    /// The daemon was killed: what was acknowledged counts, and what was sent after that may.
    ///
    /// - Parameter isReceiving: whether replies count that have come; not where they may be errors.
    func forgetInFlight(isReceiving: Bool = true) throws {
        if isReceiving { for lane in lanes.indices { try? receive(lane) } }
        lanes.removeAll()
    }

    /// Compares all records with what they must be.
    func check(on connection: Connection) throws {
        for start in stride(from: 0, to: records, by: 500) {
            let ids = start..<min(start + 500, records)
            let reply = try connection.readMany(collection, ids.map(Self.id))
            let found = try #require(reply.result?["records"]?.elements, "\(reply)")
            var byID: [String: JSON] = [:]
            for record in found { byID[record["id"]?.string ?? ""] = record }
            for id in ids {
                let record = byID[Self.id(id)]
                let number = record?["item"]?["n"]?.integer
                let history = histories[id]
                #expect(
                    ([history.settled] + history.pending).contains(number),
                    "\(Self.id(id)): \(history) \(record?.text ?? "")")
                if let record, let number {
                    #expect(try record["item"]?.means(JSON(parsing: Self.item(number))) == true, "\(record.text)")
                }
                if history.pending.isEmpty, record != nil { #expect(record?["revision"]?.string == history.revision) }
                histories[id] = History(settled: number, revision: record?["revision"]?.string)
            }
        }
        let count = histories.count { $0.settled != nil }
        let described = try connection.call("record.count", #"{"collection":\#(JSON.quote(collection))}"#)
        #expect(described.result?["count"]?.integer == count, "nothing has risen from the dead")
    }
}
