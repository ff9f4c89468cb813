import CRUDTestSupport
import Glibc
import Testing

/// Several connections that write as fast as they can, and the memory of what each of them was promised.
///
/// Each connection has ids of its own and sends its writes in a known order. After a crash the record of an id must be
/// as some write to it left it: the last that was acknowledged, or one sent after that. Items carry so much text made
/// from their number that a torn one shows.
final class CrashLoad {
    /// What an id holds after each write that was sent to it; nil where there is no record.
    private struct History {
        var states: [Int?] = [nil]
        /// The number of the last write that was acknowledged.
        var acknowledged = 0
        /// The numbers of the writes that were refused: they must not have been applied.
        var refused: Set<Int> = []

        /// What the id may hold.
        var allowed: [Int?] {
            states.indices.filter { $0 >= acknowledged && !refused.contains($0) }.map { states[$0] }
        }
    }

    private struct Write {
        var lane: Int
        var id: Int
        /// Its number among the writes of its id, from 1.
        var number: Int
    }

    /// One connection's requests that are in flight, by id on the wire.
    private struct Lane {
        var connection: Connection
        var inFlight: [Int: Write] = [:]
    }

    private static let idsPerLane = 40
    private static let depth = 32

    private let laneCount: Int
    private var histories: [[History]]
    private var revisions: Set<String> = []
    private var nextRequest = 0
    private var random: SeededGenerator

    init(lanes: Int, seed: UInt64) {
        laneCount = lanes
        histories = Array(repeating: Array(repeating: History(), count: Self.idsPerLane), count: lanes)
        random = SeededGenerator(seed: seed)
    }

    /// Writes until `count` writes have been acknowledged, then kills the daemon in the middle of the next ones.
    func writeUntilKilled(on daemon: Daemon, acknowledgements count: Int) throws {
        var lanes = try write(on: daemon, acknowledgements: count)
        try daemon.kill()
        // Replies that were on their way count as well.
        for lane in lanes.indices { _ = try takeIn(&lanes[lane]) }
    }

    /// Writes until `count` writes have been acknowledged, then cuts the power of the daemon's disk in the middle of
    /// the next ones, has the daemon reply to these and to further ones, and kills it.
    func writeUntilPowerCut(on daemon: Daemon, acknowledgements count: Int, of disk: PowerCutDisk) throws {
        var lanes = try write(on: daemon, acknowledgements: count)
        for lane in lanes.indices { _ = try takeIn(&lanes[lane]) }
        try disk.cutPower()
        try drain(&lanes, expecting: .either)
        for lane in lanes.indices { try fill(&lanes[lane], number: lane) }
        try drain(&lanes, expecting: .failure)
        #expect(try lanes[0].connection.isUsable())
        try daemon.kill()
    }

    private func drain(_ lanes: inout [Lane], expecting outcome: Outcome) throws {
        let deadline = Deadline()
        while let lane = lanes.firstIndex(where: { !$0.inFlight.isEmpty }) {
            _ = try Descriptor.wait(for: [(lanes[lane].connection.pollDescriptor, POLLIN)], until: deadline)
            try #require(!deadline.hasPassed, "requests have no reply after the power cut")
            _ = try takeIn(&lanes[lane], expecting: outcome)
        }
    }

    /// Writes until `count` writes have been acknowledged, and sends the next ones.
    private func write(on daemon: Daemon, acknowledgements count: Int) throws -> [Lane] {
        var lanes = try (0..<laneCount).map { _ in Lane(connection: try daemon.connect()) }
        let deadline = Deadline()
        var acknowledged = 0
        while acknowledged < count {
            for lane in lanes.indices { try fill(&lanes[lane], number: lane) }
            let interests = try lanes.map { (try $0.connection.pollDescriptor, POLLIN) }
            let events = try Descriptor.wait(for: interests, until: deadline)
            try #require(!deadline.hasPassed, "writes are not acknowledged")
            for lane in lanes.indices where events[lane] != 0 { acknowledged += try takeIn(&lanes[lane]) }
        }
        for lane in lanes.indices { try fill(&lanes[lane], number: lane) }
        return lanes
    }

    /// Compares every record with what its history allows, and continues from there.
    func check(on daemon: Daemon) throws {
        let connection = try daemon.connect()
        for lane in 0..<laneCount {
            let ids = (0..<Self.idsPerLane).map { Self.id(lane, $0) }
            let records = try #require(try connection.readMany(Self.collection(lane), ids).result?["records"]?.elements)
            var items: [String: String] = [:]
            for record in records { items[record["id"]?.string ?? ""] = record["item"]?.text }
            for id in 0..<Self.idsPerLane {
                let allowed = histories[lane][id].allowed
                let stored = items[Self.id(lane, id)]
                let found = allowed.first { $0.map(Self.item) == stored }
                #expect(
                    found != nil,
                    "\(Self.id(lane, id)) holds \(stored?.prefix(40) ?? "nothing"), allowed: \(allowed)")
                histories[lane][id] = History(states: [found ?? nil])
            }
        }
    }

    private func fill(_ lane: inout Lane, number: Int) throws {
        var bytes: [UInt8] = []
        while lane.inFlight.count < Self.depth {
            let id = Int(random.next() % UInt64(Self.idsPerLane))
            nextRequest += 1
            let last = histories[number][id].states.last ?? nil
            let request: String
            let collection = Self.collection(number)
            let name = Self.id(number, id)
            if last != nil, random.next() % 8 == 0 {
                request = Connection.request("record.delete", Connection.params(collection, name), id: "\(nextRequest)")
                histories[number][id].states.append(nil)
            } else {
                let method = last == nil ? "record.create" : random.next() % 2 == 0 ? "record.update" : "record.upsert"
                let params = Connection.params(collection, name, item: Self.item(nextRequest))
                request = Connection.request(method, params, id: "\(nextRequest)")
                histories[number][id].states.append(nextRequest)
            }
            lane.inFlight[nextRequest] = Write(lane: number, id: id, number: histories[number][id].states.count - 1)
            bytes += Connection.frame(request)
        }
        try lane.connection.send(bytes)
    }

    /// What becomes of writes.
    private enum Outcome {
        case success
        /// A sync that the power cut has overtaken: the kernel may confirm it although the disk has nothing of it.
        case either
        case failure
    }

    private func takeIn(_ lane: inout Lane, expecting outcome: Outcome = .success) throws -> Int {
        try lane.connection.takeIn()
        var count = 0
        while let frame = try lane.connection.bufferedFrame() {
            let reply = try Reply(JSON(parsing: frame))
            let replied = lane.inFlight.removeValue(forKey: reply.id.integer ?? 0)
            let write = try #require(replied, "a reply to nothing: \(reply)")
            if let error = reply.error {
                // What follows a write that has failed may meet another record than it expects.
                let expected = ["unavailable", "outcome_unknown", "record_not_found", "record_exists"]
                #expect(outcome != .success && expected.contains(error.name), "\(reply)")
                if error.name != "outcome_unknown" { histories[write.lane][write.id].refused.insert(write.number) }
                continue
            }
            #expect(outcome != .failure, "\(reply)")
            if let revision = reply.result?["revision"]?.string {
                #expect(revisions.insert(revision).inserted, "a revision came twice")
            }
            if outcome == .success { histories[write.lane][write.id].acknowledged = write.number }
            count += 1
        }
        return count
    }

    private static func collection(_ lane: Int) -> String { "load \(lane % 2)" }

    private static func id(_ lane: Int, _ id: Int) -> String { "\(lane)/\(id)" }

    private static func item(_ number: Int) -> String {
        #"{"number":\#(number),"fill":"\#(String(repeating: "\(number),", count: 20 + number % 100))"}"#
    }
}
