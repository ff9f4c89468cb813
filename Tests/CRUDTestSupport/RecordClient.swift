import Glibc
import Synchronization

/// What one client does: it writes and reads a few records, one request after the other.
final class RecordClient: Sendable {
    static let records = 3
    private let number: Int
    private let connection: Mutex<Connection>
    private let histories = Mutex([RecordHistory](repeating: RecordHistory(), count: records))
    private let failure = Mutex<String?>(nil)
    private let acknowledgements = Mutex(Acknowledgements())

    /// Of writes, in nanoseconds.
    struct Acknowledgements {
        var count = 0
        var last = RecordClient.now
        /// How long none came.
        var longestGap: Int64 = 0
    }

    init(_ number: Int, _ daemon: Daemon) throws {
        self.number = number
        connection = Mutex(try daemon.connect())
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

    static var now: Int64 {
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
        if outcome == .done {
            acknowledgements.withLock { known in
                known.count += 1
                known.longestGap = max(known.longestGap, end - known.last)
                known.last = end
            }
        }
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
