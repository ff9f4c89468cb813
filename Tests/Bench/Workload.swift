import ArgumentParser

/// The requests of a run, and their target.
struct Workload {
    enum Language: String, ExpressibleByArgument, CaseIterable {
        /// JSON-RPC 2.0 behind a four-byte length.
        case crudd
        /// The Redis serialization protocol, version 2.
        case resp
        /// crudd's frames, sent back unchanged.
        case echo
    }

    enum Operation: String, ExpressibleByArgument, CaseIterable {
        case read, create
        /// Of records that exist.
        case upsert
        /// Of a number in records that exist.
        case increment
        /// The ten records of a group, by a property that has an index.
        case query
        /// A count by a property without an index, for which every record is scanned.
        case scan
    }

    enum Order: String, ExpressibleByArgument, CaseIterable {
        case rising, random
        /// Random among the first ``hotRecords``.
        case hot
        /// Random among all, a few of them much more often than the others (``ZipfianDistribution``).
        case zipfian
    }

    /// So many records of 200 bytes fit into crudd's cache as it is by default.
    static let hotRecords: UInt64 = 200_000

    var socket: String
    var language: Language
    var operation: Operation
    var order: Order
    var collection: String
    var connections: Int
    /// So many of the connections send requests; the others are only open.
    var active: Int
    /// Requests in flight on each connection.
    var depth: Int
    /// Records offset ..< offset + records exist; all operations but creates choose among them.
    var records: UInt64
    var offset: UInt64
    var valueBytes: Int
    /// The first record of a run of creates.
    var first: UInt64
    var seed: UInt64
    /// Whether to check the value of every reply to a read, not only of a sample.
    var checksEveryValue: Bool
    /// Created records expire after so many seconds; nil: never.
    var ttl: Int?
    /// Whether to count creates that fail with `unavailable` or `outcome_unknown`; else they end the run.
    var mayFail = false
}

/// The records of requests, one after another. Record n has the same id in every target.
struct RecordSequence {
    private enum Choice {
        /// From a record on, each once.
        case new
        /// All of them, again and again.
        case rising
        case uniform
        case zipfian(ZipfianDistribution)
    }

    private let choice: Choice
    private let offset: UInt64
    private let records: UInt64
    private var next: UInt64 = 0
    private var state: UInt64

    init(_ workload: Workload) {
        records = workload.order == .hot ? min(workload.records, Workload.hotRecords) : workload.records
        choice =
            switch (workload.operation, workload.order) {
            case (.create, _): .new
            case (_, .rising): .rising
            case (_, .random), (_, .hot): .uniform
            case (_, .zipfian): .zipfian(ZipfianDistribution(count: workload.records))
            }
        offset = workload.operation == .create ? workload.first : workload.offset
        state = workload.seed
    }

    mutating func advance() -> UInt64 {
        defer { next += 1 }
        switch choice {
        case .new: return offset + next
        case .rising: return offset + next % records
        // The high half of the product spreads the bits evenly over the records.
        case .uniform: return offset + randomBits().multipliedFullWidth(by: records).high
        case .zipfian(let distribution):
            // Multiplied by a large prime, so that frequent records are not neighbours.
            return offset + distribution.rank(randomBits()) &* 2_654_435_761 % records
        }
    }

    /// SplitMix64.
    private mutating func randomBits() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
