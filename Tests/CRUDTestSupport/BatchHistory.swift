/// Decides whether atomic batches, each of which has named what it found in each of its records, can have taken effect
/// one after the other.
///
/// A batch writes its own number into the records that it writes, so that each reader of one of them knows which batch
/// has written it, and each content of a record has one successor. The batches are nodes of a graph: an edge leads from
/// the one that has written something to those that have found it, from these to the one that has replaced it, and from
/// one that was acknowledged to those that were sent later. They are strictly serializable if that graph has no cycle
/// (Adya, Weak Consistency, 1999, section 4.2).
package struct BatchHistory: Sendable {
    package enum Outcome: Hashable, Sendable {
        case applied, refused, unknown
    }

    package struct Batch: Sendable {
        /// Above 0, and of no other batch.
        package let number: Int
        /// The numbers that its records held; 0: there was no record. Its checks hold, if it was applied.
        let found: [String: Int]
        /// Those of its records that it has written.
        let written: Set<String>
        fileprivate(set) var outcome = Outcome.unknown
        /// When it was sent, and acknowledged, among all of these events.
        fileprivate var sent = 0
        fileprivate var acknowledged: Int?

        package init(_ number: Int, found: [String: Int], written: Set<String>) {
            self.number = number
            self.found = found
            self.written = written
        }
    }

    private struct Content: Hashable {
        let record: String
        /// Of the batch that has written it.
        let number: Int
    }

    private var batches: [Int: Batch] = [:]
    private var events = 0

    package init() {}

    /// How many batches were sent.
    package var count: Int { batches.count }

    /// How many were acknowledged.
    package var appliedCount: Int { batches.values.count { $0.outcome == .applied } }

    /// The ids of all records that were written.
    package var records: Set<String> { batches.values.reduce(into: []) { $0.formUnion($1.written) } }

    package mutating func begin(_ batch: Batch) {
        events += 1
        batches[batch.number] = batch
        batches[batch.number]?.sent = events
    }

    package mutating func end(_ number: Int, _ outcome: Outcome) {
        events += 1
        batches[number]?.outcome = outcome
        if outcome == .applied { batches[number]?.acknowledged = events }
    }

    /// - Returns: what contradicts that they have taken effect one after the other, as far as that is known.
    package func violations() -> [String] {
        var violations: [String] = []
        // One whose outcome is unknown was applied if anything of it was found.
        var applied = Set(batches.values.lazy.filter { $0.outcome == .applied }.map(\.number))
        for batch in batches.values.sorted(by: { $0.number < $1.number }) {
            for (record, number) in batch.found where number != 0 {
                guard let writer = batches[number], writer.written.contains(record), writer.outcome != .refused else {
                    violations.append("\(record) held \(number), which was not written into it")
                    continue
                }
                applied.insert(number)
            }
        }
        var edges: [Int: Set<Int>] = [:]
        var successors: [Content: Int] = [:]
        for number in applied.sorted() {
            guard let batch = batches[number] else { continue }
            for (record, content) in batch.found {
                edges[content, default: []].insert(number)
                guard batch.written.contains(record) else { continue }
                if let other = successors.updateValue(number, forKey: Content(record: record, number: content)) {
                    violations.append("\(other) and \(number) have both replaced \(content) in \(record)")
                }
            }
        }
        // What is before an event is before all later ones; the nodes of events are below 0.
        for event in 1..<max(events, 1) { edges[-event] = [-event - 1] }
        for number in applied {
            guard let batch = batches[number] else { continue }
            edges[-batch.sent, default: []].insert(number)
            if let acknowledged = batch.acknowledged { edges[number, default: []].insert(-acknowledged) }
            for (record, content) in batch.found {
                guard let next = successors[Content(record: record, number: content)], next != number else { continue }
                edges[number, default: []].insert(next)
            }
        }
        if let cycle = Self.cycle(edges) {
            violations.append(
                "each before the next, and the last before the first: "
                    + cycle.compactMap { batches[$0].map { "\($0)" } }.joined(separator: "; "))
        }
        return violations
    }

    /// - Returns: the nodes of a cycle, in its order; nil if there is none.
    private static func cycle(_ edges: [Int: Set<Int>]) -> [Int]? {
        var finished: Set<Int> = []
        for start in edges.keys.sorted() where !finished.contains(start) {
            var path = [(node: start, next: (edges[start] ?? []).makeIterator())]
            var onPath: Set = [start]
            while !path.isEmpty {
                guard let next = path[path.count - 1].next.next() else {
                    let node = path.removeLast().node
                    onPath.remove(node)
                    finished.insert(node)
                    continue
                }
                if onPath.contains(next) {
                    return path.map(\.node).drop { $0 != next }.map(\.self)
                }
                guard !finished.contains(next) else { continue }
                path.append((next, (edges[next] ?? []).makeIterator()))
                onPath.insert(next)
            }
        }
        return nil
    }
}
