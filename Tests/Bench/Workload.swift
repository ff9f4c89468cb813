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
        /// The ten records of a group, by a property that has an index.
        case query
        /// A count by a property without an index, for which every record is scanned.
        case scan
    }

    enum Order: String, ExpressibleByArgument, CaseIterable {
        case rising, random
        /// Random among the first ``hotRecords``.
        case hot
    }

    /// So many records of 200 bytes fit into crudd's cache as it is by default.
    static let hotRecords: UInt64 = 150_000

    var socket: String
    var language: Language
    var operation: Operation
    var order: Order
    var collection: String
    var connections: Int
    /// Requests in flight on each connection.
    var depth: Int
    /// Records 0 ..< records exist; reads choose among them.
    var records: UInt64
    var valueBytes: Int
    /// The first record of a run of creates.
    var first: UInt64
    var seed: UInt64
    /// Whether to check the value of every reply to a read, not only of a sample.
    var checksEveryValue: Bool
    /// Whether to count creates that fail with `unavailable` or `outcome_unknown`; else they end the run.
    var mayFail = false
}

/// The records of requests, one after another. Record n has the same id in every target.
struct RecordSequence {
    private let operation: Workload.Operation
    private let order: Workload.Order
    private let records: UInt64
    private var next: UInt64
    private var state: UInt64

    init(_ workload: Workload) {
        operation = workload.operation
        order = workload.order
        records = workload.order == .hot ? min(workload.records, Workload.hotRecords) : workload.records
        next = workload.operation == .create ? workload.first : 0
        state = workload.seed
    }

    mutating func advance() -> UInt64 {
        if operation != .create, order != .rising {
            // SplitMix64; the high half of the product spreads its output evenly over the records.
            state &+= 0x9e37_79b9_7f4a_7c15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
            return (mixed ^ (mixed >> 31)).multipliedFullWidth(by: records).high
        }
        defer { next += 1 }
        return operation == .create ? next : next % records
    }
}
