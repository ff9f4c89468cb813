import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import PluginTestSupport
import Testing

/// Random changes of a collection with indexes that remembers removals, against sorted arrays.
@Suite struct RandomizedIndexTests {
    private static let indexCount = 2
    private static let now: Int64 = 1000

    /// A record as it should be.
    private struct Expected {
        let record: PluginRecord
        let id: [UInt8]
        var keys: [[UInt8]]

        init(_ record: PluginRecord, keys: [[UInt8]]) {
            self.record = record
            id = Array(record.id.utf8)
            self.keys = keys
        }

        var isVisible: Bool { record.expiresAt == 0 || record.expiresAt > now }
    }

    private let backend: PluginBackend
    private let collection: PluginCollection
    private let reader: PluginReader

    init() throws {
        backend = try PluginBackend(ExportedPlugin("memory"), options: "{}")
        backend.call.now = Self.now
        collection = try backend.open("clients", indexes: ["a", "b"], hasSequences: true)
        reader = try backend.reader()
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func keepsEveryOrder(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var model: [String: Expected] = [:]
        for phase in 0..<12 {
            // Phases of growing and of shrinking take turns.
            let removals = phase % 3 == 2 ? 8 : 2
            for _ in 0..<5 { try write(removals: removals, &model, &random) }
            for _ in 0..<10 { try compare(model, &random) }
        }
    }

    // MARK: Writing

    private func write(
        removals: Int, _ model: inout [String: Expected], _ random: inout SeededGenerator
    ) throws {
        var changed = model
        var expected: [PluginOutcome] = []
        let mutations = (0..<300).map { _ -> PluginMutation in
            let id = "\(Int.random(in: 0..<1500, using: &random))"
            let current = changed[id].flatMap { $0.isVisible ? $0 : nil }
            switch Int.random(in: 0..<12, using: &random) {
            case 0..<removals:
                let sequence = backend.highestSequence + UInt64(expected.count) + 1
                expected.append(current == nil ? .notFound : .removed)
                if current != nil {
                    changed[id] = nil
                    changed["removal \(sequence)"] = Expected(.removed(id, sequence: sequence), keys: [])
                }
                return .remove(id, in: collection)
            case 10:
                let revision = Bool.random(using: &random) ? current?.record.revision ?? "none" : "stale"
                let keys = randomKeys(&random)
                expected.append(
                    current.map {
                        revision == "stale" ? .mismatch(current: $0.record.revision) : .passed
                    } ?? .notFound)
                if current?.record.revision == revision { changed[id]?.keys = keys }
                return .setKeys(id, keys, ifRevision: revision, in: collection)
            default:
                let record = PluginRecord(
                    id, bytes: [UInt8](repeating: 7, count: Int.random(in: 0..<20, using: &random)),
                    revision: "\(UInt16.random(in: 0...UInt16.max, using: &random))",
                    expiresAt: [0, 0, 0, Self.now, Self.now + 1].randomElement(using: &random) ?? 0,
                    sequence: backend.highestSequence + UInt64(expected.count) + 1)
                let keys = randomKeys(&random)
                expected.append(.applied(replaced: current != nil))
                changed[id] = Expected(record, keys: keys)
                return .put(record, keys: keys, in: collection)
            }
        }
        if Int.random(in: 0..<4, using: &random) == 0 {
            _ = try backend.write(mutations + [.check("none", if: .present, in: collection)], isAtomic: true)
        } else {
            #expect(try backend.write(mutations) == expected)
            model = changed
        }
    }

    /// Short keys of few bytes, so that many are equal or begin with each other; some are empty.
    private func randomKeys(_ random: inout SeededGenerator) -> [[UInt8]] {
        (0..<Self.indexCount).map { _ in
            (0..<Int.random(in: 0..<4, using: &random)).map { _ in
                [0, 1, 0x7F, 0xFF].randomElement(using: &random) ?? 0
            }
        }
    }

    // MARK: Comparing

    private func compare(_ model: [String: Expected], _ random: inout SeededGenerator) throws {
        let orders: [PluginRange.Order] = [
            .id, .sequence, .key(index: 0), .key(index: 1), .unkeyed(index: 0), .unkeyed(index: 1),
        ]
        let order = orders.randomElement(using: &random) ?? .id
        var range = PluginRange(order)
        func bound(_ random: inout SeededGenerator) -> [UInt8] {
            if case .key = order { return randomKeys(&random)[0] }
            return Bool.random(using: &random) ? [] : Array("\(Int.random(in: 0..<1500, using: &random))".utf8)
        }
        if order == .sequence {
            range.lowerSequence = UInt64.random(in: 0...backend.highestSequence, using: &random)
            range.upperSequence =
                Bool.random(using: &random) ? 0 : UInt64.random(in: 0...backend.highestSequence, using: &random)
        } else {
            range.lower = bound(&random)
            range.upper = bound(&random)
        }
        let isReversed = Bool.random(using: &random)
        let limit = Bool.random(using: &random) ? 0 : Int.random(in: 1..<50, using: &random)
        var expected = Self.records(of: model, in: range)
        #expect(try reader.count(collection, range) == expected.count { !$0.record.isRemoved }, "\(range)")
        if isReversed { expected.reverse() }
        // Resumes behind a record, which may be one that the range does not have.
        var after: (key: [UInt8], id: String) = ([], "")
        let place = model.filter { !$0.value.record.isRemoved }.keys.sorted().randomElement(using: &random)
            .flatMap { model[$0] }
        if order != .sequence, Bool.random(using: &random), let place {
            after = (Self.key(of: place, in: order), place.record.id)
            expected.removeAll {
                isReversed ? !Self.precedes($0, place, in: order) : !Self.precedes(place, $0, in: order)
            }
        }
        let found = try reader.scan(
            collection, range, isReversed: isReversed, afterKey: after.key, after: after.id, limit: limit)
        let wanted = expected.prefix(limit == 0 ? .max : limit).map(\.record)
        #expect(found == wanted, "\(range), reversed \(isReversed), after \(after), limit \(limit)")
        #expect(found.map(\.sequence) == wanted.map(\.sequence))
    }

    /// The records of a range in order.
    private static func records(of model: [String: Expected], in range: PluginRange) -> [Expected] {
        model.values.filter { $0.isVisible && contains(range, $0) }.sorted { precedes($0, $1, in: range.order) }
    }

    private static func contains(_ range: PluginRange, _ expected: Expected) -> Bool {
        if expected.record.isRemoved, range.order != .sequence { return false }
        var place = expected.id
        switch range.order {
        case .id: break
        case .unsequenced: return false
        case .sequence:
            let sequence = expected.record.sequence
            return sequence >= range.lowerSequence && (range.upperSequence == 0 || sequence < range.upperSequence)
        case .key(let index):
            if expected.keys[index].isEmpty { return false }
            place = expected.keys[index]
        case .unkeyed(let index): if !expected.keys[index].isEmpty { return false }
        }
        return !place.lexicographicallyPrecedes(range.lower)
            && (range.upper.isEmpty || place.lexicographicallyPrecedes(range.upper))
    }

    /// What records are ordered by before their ids.
    private static func key(of expected: Expected, in order: PluginRange.Order) -> [UInt8] {
        if case .key(let index) = order { return expected.keys[index] }
        return []
    }

    private static func precedes(_ left: Expected, _ right: Expected, in order: PluginRange.Order) -> Bool {
        if order == .sequence { return left.record.sequence < right.record.sequence }
        let (leftKey, rightKey) = (key(of: left, in: order), key(of: right, in: order))
        return leftKey == rightKey
            ? left.id.lexicographicallyPrecedes(right.id) : leftKey.lexicographicallyPrecedes(rightKey)
    }
}
