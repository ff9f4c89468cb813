import ArgumentParser

/// What a run asks of which target.
struct Workload {
    enum Language: String, ExpressibleByArgument, CaseIterable {
        /// JSON-RPC 2.0 behind a four-byte length.
        case crudd
        /// The Redis serialization protocol, version 2.
        case resp
        /// crudd's frames, sent back as they came.
        case echo
    }

    enum Operation: String, ExpressibleByArgument, CaseIterable {
        case read, create
        /// The ten records of a group, by a property that has an index.
        case query
        /// A count by a property that has none, which every record is looked at for.
        case scan
    }

    enum Order: String, ExpressibleByArgument, CaseIterable {
        case rising, random
    }

    var socket: String
    var language: Language
    var operation: Operation
    var order: Order
    var collection: String
    var connections: Int
    /// Requests in flight on each connection.
    var depth: Int
    /// Records 0 ..< records are there; reads choose among them.
    var records: UInt64
    var valueBytes: Int
    /// The record that a run of creates begins with.
    var first: UInt64
    var seed: UInt64
    /// Check the value of every reply to a read, and not of a sample only.
    var checksEveryValue: Bool
    /// Count creates that are answered `unavailable` or `outcome_unknown`; else they end the run.
    var mayFail = false
}

/// The records that requests name, one after another. Record n is known to every target under the same id.
struct RecordSequence {
    private let operation: Workload.Operation
    private let order: Workload.Order
    private let records: UInt64
    private var next: UInt64
    private var state: UInt64

    init(_ workload: Workload) {
        operation = workload.operation
        order = workload.order
        records = workload.records
        next = workload.operation == .create ? workload.first : 0
        state = workload.seed
    }

    mutating func advance() -> UInt64 {
        if operation != .create, order == .random {
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
