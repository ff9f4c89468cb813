import Glibc
import Synchronization

/// What one client does: it writes and reads a few records, one request after the other.
final class RecordClient: Sendable {
    static let records = 3
    private static let lateMilliseconds: Int32 = 3000
    private let number: Int
    private let daemon: RestartedDaemon
    /// How often the daemon had been killed before it was made, and the connection.
    private let connection: Mutex<(kills: Int, connection: Connection)>
    private let histories: RecordHistories
    private let knownFailure = Mutex<String?>(nil)
    private let acknowledgements = Mutex(Acknowledgements())

    /// Of writes, in nanoseconds.
    struct Acknowledgements {
        var count = 0
        var last = RecordClient.now
        /// How long none came.
        var longestGap: Int64 = 0
    }

    init(_ number: Int, _ daemon: RestartedDaemon, _ histories: RecordHistories) throws {
        self.number = number
        self.histories = histories
        self.daemon = daemon
        connection = Mutex((daemon.kills, try daemon.current.connect()))
    }

    var acknowledged: Int { acknowledgements.withLock(\.count) }

    /// How long no write was acknowledged, at most, since this was asked for last.
    func takeLongestGap() -> Duration {
        .nanoseconds(
            acknowledgements.withLock { known in
                defer { known.longestGap = 0 }
                return max(known.longestGap, Self.now - known.last)
            })
    }

    /// What it was told that cannot be true, or that it did not expect; nil: nothing.
    var failure: String? { knownFailure.withLock(\.self) }

    func run(until isOver: () -> Bool) {
        var generator = SeededGenerator(seed: UInt64(number))
        // No two clients write the same one.
        var value = number
        do {
            while !isOver() {
                value += 100
                let record = Int.random(in: 0..<Self.records, using: &generator)
                try execute(Self.operation(value, by: &generator), on: record)
            }
        } catch {
            knownFailure.withLock { $0 = "\(error)" }
        }
    }

    private static func operation(_ value: Int, by generator: inout SeededGenerator) -> RecordHistory.Operation {
        switch Int.random(in: 0..<20, using: &generator) {
        case 0..<10: .read
        case 10: .create(Item(number: value))
        case 11: .update(Item(number: value))
        case 12: .patch(value)
        case 13: .delete
        default: .upsert(Item(number: value))
        }
    }

    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    private func execute(_ operation: RecordHistory.Operation, on record: Int) throws {
        let outcome = try histories.note(operation, record, by: number) {
            try connection.withLock { connected in
                let reply: Reply
                do {
                    reply = try Self.send(operation, "\(record)", on: connected.connection)
                } catch {
                    guard daemon.kills > connected.kills else { throw error }
                    connected = try connectAgain()
                    // The server may still execute what the daemon had sent.
                    poll(nil, 0, Self.lateMilliseconds)
                    return operation == .read ? .refused : .unknown
                }
                return try Self.outcome(of: operation, reply)
            }
        }
        switch outcome {
        case .refused: poll(nil, 0, 5)
        case .done: noteAcknowledgement(at: Self.now)
        case .returned where operation != .read: noteAcknowledgement(at: Self.now)
        default: break
        }
    }

    private func connectAgain() throws -> (kills: Int, connection: Connection) {
        let deadline = Deadline()
        while true {
            if let connected = try? daemon.connect() { return connected }
            guard !deadline.hasPassed else { throw Failure("the daemon is not there again") }
            poll(nil, 0, 10)
        }
    }

    private func noteAcknowledgement(at time: Int64) {
        acknowledgements.withLock { known in
            known.count += 1
            known.longestGap = max(known.longestGap, time - known.last)
            known.last = time
        }
    }

    private static func send(
        _ operation: RecordHistory.Operation, _ id: String, on connection: Connection
    ) throws -> Reply {
        switch operation {
        case .create(let item): try connection.create("c", id, item.json)
        case .update(let item): try connection.update("c", id, item.json)
        case .upsert(let item): try connection.upsert("c", id, item.json)
        case .patch(let number):
            try connection.call("record.patch", Connection.params("c", id, more: ["patch": #"{"p":\#(number)}"#]))
        case .delete, .drop: try connection.delete("c", id)
        case .read, .exists: try connection.read("c", id)
        }
    }

    private static func outcome(
        of operation: RecordHistory.Operation, _ reply: Reply
    ) throws -> RecordHistory.Outcome {
        switch (reply.error?.name, operation) {
        case (nil, .read), (nil, .patch):
            guard let item = Item(reply.result?["item"]) else { throw Violation(description: "not an item: \(reply)") }
            return .returned(item)
        case (nil, _): return .done
        case ("record_not_found", .read): return .returned(nil)
        case ("record_not_found", .update), ("record_not_found", .patch), ("record_not_found", .delete): return .missing
        case ("record_exists", .create): return .exists
        case ("unavailable", _): return .refused
        case ("outcome_unknown", _) where operation != .read: return .unknown
        default: throw Failure("\(reply) to \(operation)")
        }
    }
}
