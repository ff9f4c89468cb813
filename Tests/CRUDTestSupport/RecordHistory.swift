/// What clients have seen of one record, each write with a value that no other one has; and whether that could have
/// happened one operation after the other, each between its begin and its end (linearizability).
///
/// With such values that is decided without a search (Gibbons and Korach, Testing Shared Memories, 1997): a write and
/// the reads of its value take a *zone*, from the first end to the last begin among them. Either all of them can be put
/// at one moment (the first end is the later one), or the value was there throughout the zone. Two values cannot be
/// there at once, and one that was there for a moment cannot have been so within the zone of another.
package struct RecordHistory: Sendable {
    /// What has become of a write.
    package enum Outcome: Sendable {
        /// It was acknowledged.
        case done
        /// Nothing was applied.
        case refused
        /// It may take effect at any time from its begin on.
        case unknown
    }

    private struct Write {
        let begin: Int64
        let end: Int64
        let outcome: Outcome
    }

    private struct Read {
        let value: Int
        let begin: Int64
        let end: Int64
    }

    /// There was no record.
    package static let absent = 0

    private var writes: [Int: Write] = [RecordHistory.absent: Write(begin: .min, end: .min, outcome: .done)]
    private var reads: [Read] = []

    package init() {}

    package mutating func write(_ value: Int, from begin: Int64, to end: Int64, _ outcome: Outcome) {
        writes[value] = Write(begin: begin, end: outcome == .unknown ? .max : end, outcome: outcome)
    }

    package mutating func read(_ value: Int, from begin: Int64, to end: Int64) {
        reads.append(Read(value: value, begin: begin, end: end))
    }

    package mutating func merge(_ other: RecordHistory) {
        writes.merge(other.writes) { $1 }
        reads += other.reads
    }

    private struct Zone {
        let value: Int
        var firstEnd: Int64
        var lastBegin: Int64

        /// Whether the value was there from one moment to a later one.
        var isForward: Bool { firstEnd < lastBegin }
        var low: Int64 { min(firstEnd, lastBegin) }
        var high: Int64 { max(firstEnd, lastBegin) }
    }

    /// Why it could not have happened; nil: it could.
    package var violation: String? {
        var zones: [Int: Zone] = [:]
        for (value, write) in writes where write.outcome == .done {
            zones[value] = Zone(value: value, firstEnd: write.end, lastBegin: write.begin)
        }
        for read in reads {
            guard let write = writes[read.value] else { return "value \(read.value) was read and never written" }
            if write.outcome == .refused { return "value \(read.value) was refused, and read" }
            if read.end < write.begin { return "value \(read.value) was read before it was written" }
            var zone = zones[read.value] ?? Zone(value: read.value, firstEnd: write.end, lastBegin: write.begin)
            zone.firstEnd = min(zone.firstEnd, read.end)
            zone.lastBegin = max(zone.lastBegin, read.begin)
            zones[read.value] = zone
        }
        let forward = zones.values.filter(\.isForward).sorted { $0.low < $1.low }
        var last: Zone?
        for zone in forward {
            if let last, zone.low < last.high { return "values \(last.value) and \(zone.value) were there at once" }
            last = zone
        }
        for zone in zones.values where !zone.isForward {
            if let other = forward.first(where: { $0.low < zone.low && zone.high < $0.high }) {
                return "value \(zone.value) was there while value \(other.value) was"
            }
        }
        return nil
    }
}
