import CRUDTestSupport
import Glibc

/// Several connections that use the records of some collections at random, whichever another one uses, and check every
/// reply against what they know of the collection.
final class ClientLoad {
    private struct Lane {
        var connection: Connection
        var inFlight: [Int: ClientRequest] = [:]
    }

    private static let depth = 4
    /// How many requests on one record may be in flight.
    private static let depthOfRecord = 3

    var histories: [String: CollectionHistory]
    /// Collections that are not used now.
    var paused: Set<String> = []
    private let names: [String]
    private let trace: Trace
    private var lanes: [Lane] = []
    private var random: SeededGenerator
    private var lastNumber = 0
    private(set) var replies = 0
    /// How many requests have failed, by the name of their error.
    private(set) var failures: [String: Int] = [:]

    init(_ collections: [String: Int], seed: UInt64, trace: Trace) {
        names = collections.keys.sorted()
        histories = Dictionary(uniqueKeysWithValues: collections.map { ($0, CollectionHistory($0, records: $1)) })
        random = SeededGenerator(seed: seed)
        self.trace = trace
    }

    static func id(_ number: Int) -> String { "r\(number)/é" }

    static func number(ofID id: String?) -> Int? { (id?.dropFirst().dropLast(2)).flatMap { Int($0) } }

    // MARK: Running

    func connect(_ count: Int, to daemon: Daemon) throws {
        lanes = try (0..<count).map { _ in Lane(connection: try daemon.connect()) }
    }

    /// Sends requests and checks replies until the administrator's reply has come, or so many replies of clients.
    ///
    /// - Returns: the reply of the administrator.
    func run(
        on daemon: Daemon, _ administrator: Connection? = nil, replies count: Int = .max, within timeout: Duration
    ) throws -> Reply? {
        let wanted = count == .max ? count : replies + count
        let deadline = Deadline(timeout)
        while replies < wanted, !deadline.hasPassed {
            for lane in lanes.indices { try send(lane) }
            let connections = lanes.map(\.connection) + [administrator].compactMap(\.self)
            let interests = try connections.map { (try $0.pollDescriptor, POLLIN) }
            let events = try Descriptor.wait(for: interests + [(daemon.process.handle.number, POLLIN)], until: deadline)
            if events.last != 0 {
                throw Violation(description: "the daemon has ended: \(try daemon.process.waitForExit())")
            }
            for lane in lanes.indices where events[lane] != 0 { try receive(lane) }
            if let administrator, events[lanes.count] != 0 {
                try administrator.takeIn()
                if let frame = try administrator.bufferedFrame() { return try Reply(JSON(parsing: frame)) }
            }
        }
        return nil
    }

    /// Waits until no request is in flight on a collection that is paused.
    func awaitPaused(on daemon: Daemon, within timeout: Duration) throws -> Bool {
        let deadline = Deadline(timeout)
        while lanes.contains(where: { $0.inFlight.values.contains { paused.contains($0.collection) } }) {
            if deadline.hasPassed { return false }
            _ = try run(on: daemon, replies: 1, within: .seconds(1))
        }
        return true
    }

    /// The daemon was killed: replies that were on their way count, the outcome of all else is unknown.
    func endAll() throws {
        for lane in lanes.indices { try receive(lane, isLast: true) }
        lanes = []
        for name in names { try histories[name]?.endAll() }
    }

    // MARK: Sending

    private func send(_ lane: Int) throws {
        var bytes: [UInt8] = []
        // Some may find nothing to do.
        for _ in 0..<Self.depth where lanes[lane].inFlight.count < Self.depth {
            let name = names[Int(random.next() % UInt64(names.count))]
            guard !paused.contains(name), let request = makeRequest(on: name, lane) else { continue }
            bytes += frame(request, on: name, lane)
        }
        if !bytes.isEmpty { try lanes[lane].connection.send(bytes) }
    }

    /// A request, and how it is sent.
    private typealias Draft = (kind: ClientRequest.Kind, method: String, params: String)

    private func frame(_ draft: Draft, on name: String, _ lane: Int) -> [UInt8] {
        lastNumber += 1
        lanes[lane].inFlight[lastNumber] = ClientRequest(collection: name, kind: draft.kind)
        return Connection.frame(Connection.request(draft.method, draft.params, id: "\(lastNumber)"))
    }

    private func makeRequest(on name: String, _ lane: Int) -> Draft? {
        guard var history = histories.removeValue(forKey: name) else { return nil }
        defer { histories[name] = history }
        let id = Int(random.next() % UInt64(history.count))
        switch random.next() % 40 {
        case 0, 1:
            let ids = Set((0..<8).map { _ in Int(random.next() % UInt64(history.count)) }).sorted()
            let reads = ids.filter { history.pendingCount(of: $0) < Self.depthOfRecord }.map {
                ($0, history.begin(.read, $0, on: lane))
            }
            guard !reads.isEmpty else { return nil }
            let list = reads.map { JSON.quote(Self.id($0.0)) }.joined(separator: ",")
            return (.readMany(reads), "record.readMany", #"{"collection":\#(JSON.quote(name)),"ids":[\#(list)]}"#)
        case 2, 3:
            let selection = Selection.random(upTo: lastNumber, using: &random)
            let kind = ClientRequest.Kind.query(selection, scan: history.beginScan(), found: [:])
            return (kind, "record.query", selection.query(of: name, cursor: nil))
        case 4:
            let selection = Selection.random(upTo: lastNumber, using: &random)
            return (.count(selection, scan: history.beginScan()), "record.count", selection.count(of: name))
        default:
            guard history.pendingCount(of: id) < Self.depthOfRecord else { return nil }
            let operation = chooseOperation(isThere: history.items(of: id) != [nil])
            let ticket = history.begin(operation, id, on: lane)
            let (method, params) = Self.text(of: operation, name, id)
            return (.record(operation, ticket: ticket), method, params)
        }
    }

    private func chooseOperation(isThere: Bool) -> RecordHistory.Operation {
        // Each number is used once.
        lastNumber += 1
        let item = Item(number: lastNumber)
        switch random.next() % 20 {
        case 0..<7: return .read
        case 7: return .exists
        case 8, 9: return .create(item)
        case 10, 11: return .update(item)
        case 12..<16: return .upsert(item)
        case 16, 17: return isThere ? .patch(lastNumber) : .create(item)
        default: return isThere ? .delete : .upsert(item)
        }
    }

    private static func text(
        of operation: RecordHistory.Operation, _ name: String, _ id: Int
    ) -> (method: String, params: String) {
        let id = Self.id(id)
        switch operation {
        case .create(let item): return ("record.create", Connection.params(name, id, item: item.json))
        case .update(let item): return ("record.update", Connection.params(name, id, item: item.json))
        case .upsert(let item): return ("record.upsert", Connection.params(name, id, item: item.json))
        case .patch(let number):
            return ("record.patch", Connection.params(name, id, more: ["patch": #"{"p":\#(number)}"#]))
        case .delete, .drop: return ("record.delete", Connection.params(name, id))
        case .read: return ("record.read", Connection.params(name, id))
        case .exists: return ("record.exists", Connection.params(name, id))
        }
    }

    // MARK: Receiving

    private func receive(_ lane: Int, isLast: Bool = false) throws {
        try lanes[lane].connection.takeIn()
        while let frame = try lanes[lane].connection.bufferedFrame() {
            let reply = try Reply(JSON(parsing: frame))
            guard let request = lanes[lane].inFlight.removeValue(forKey: reply.id.integer ?? 0) else {
                throw Violation(description: "a reply to nothing: \(reply)")
            }
            replies += 1
            guard var history = histories.removeValue(forKey: request.collection) else { continue }
            defer { histories[request.collection] = history }
            do {
                if let error = reply.error { failures[error.name, default: 0] += 1 }
                if let next = try ReplyCheck(reply: reply, request: request).execute(on: &history), !isLast {
                    let draft = Self.nextPage(next, request.collection, reply)
                    try lanes[lane].connection.send(self.frame(draft, on: request.collection, lane))
                }
            } catch let violation as Violation {
                trace.add("reply: \(String("\(reply)".prefix(600)))", to: [request.collection])
                throw violation
            }
        }
    }

    private static func nextPage(_ kind: ClientRequest.Kind, _ name: String, _ reply: Reply) -> Draft {
        guard case .query(let selection, _, _) = kind else { return (kind, "daemon.ping", "{}") }
        return (kind, "record.query", selection.query(of: name, cursor: reply.result?["cursor"]?.string))
    }
}
