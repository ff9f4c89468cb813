import CRUDPluginABI
import Glibc

/// Writes that continue until the process is killed, and what must be there afterwards.
///
/// Batch n puts `a`, one of `k0` to `k9` by the last digit of n, and `b`, all with revision n, an item whose size
/// depends on n as well, and n as their key. Where removals are remembered it also puts `x` and the number n, and
/// removes what the batch before has put there. It is reported on standard output once it has been acknowledged.
package enum CrashWorkload {
    private static let slots = 10
    private static let index = "n"

    /// How far the workload has come.
    struct Progress {
        /// The last batch; 0: none.
        var batch = 0
        /// The highest sequence number.
        var sequence: UInt64 = 0

        /// - Parameter line: as ``line`` has it.
        init?(line: String) {
            let words = line.split(separator: " ")
            guard words.count == 2, let batch = Int(words[0]), let sequence = UInt64(words[1]) else { return nil }
            self.batch = batch
            self.sequence = sequence
        }

        init() {}

        var line: String { "\(batch) \(sequence)\n" }
    }

    /// Writes batches from `first` on; it ends when the process does.
    package static func write(
        _ plugin: ExportedPlugin, options: String, format: String, collection name: String, from first: Int
    ) throws(CallError) -> Never {
        let backend = try PluginBackend(plugin, options: options)
        let isAtomic = backend.has(CRUDD_HAS_TRANSACTIONS)
        let isIndexed = backend.has(CRUDD_HAS_INDEXES)
        let remembers = remembersRemovals(backend)
        let collection = try backend.open(
            name, format: format, indexes: isIndexed ? [index] : [], hasSequences: remembers || backend.numbersItself)
        var progress = Progress()
        progress.batch = first - 1
        while true {
            progress.batch += 1
            let ids = ["a", "k\(progress.batch % slots)", "b"] + (remembers ? ["x\(progress.batch)"] : [])
            var mutations = ids.map { id in
                PluginMutation.put(
                    record(id, progress.batch, format), keys: isIndexed ? [key(progress.batch)] : [], in: collection)
            }
            if remembers, progress.batch > first { mutations.append(.remove("x\(progress.batch - 1)", in: collection)) }
            let outcomes = try backend.write(mutations, isAtomic: isAtomic)
            for outcome in outcomes where outcome != .created && outcome != .replaced {
                throw .violation("the outcome of a put was \(outcome)")
            }
            progress.sequence = backend.highestSequence
            let line = Array(progress.line.utf8)
            guard unsafe line.withUnsafeBytes({ Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }) > 0 else {
                exit(1)
            }
        }
    }

    /// Whether an atomic batch has its removals remembered with it.
    private static func remembersRemovals(_ backend: PluginBackend) -> Bool {
        backend.has(CRUDD_HAS_TRANSACTIONS) && backend.has(CRUDD_HAS_SEQUENCES)
    }

    private static func record(_ id: String, _ number: Int, _ format: String) -> PluginRecord {
        PluginRecord(id, bytes: Sample.item(number, format, padding: number * 37 % 5000), revision: "\(number)")
    }

    /// Eight bytes that sort like the number.
    private static func key(_ number: Int) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - $0 * 8)) }
    }

    // MARK: Verifying

    /// Verifies what a killed workload has left.
    ///
    /// - Returns: the last batch that is there whole, and the highest sequence number so far; nil: nothing is there.
    static func verify(
        _ backend: PluginBackend, acknowledged: Progress, _ context: CheckContext
    ) throws(CallError) -> Progress? {
        let name = context.name("crash workload")
        let isThere = try backend.collections().contains(name)
        guard backend.has(CRUDD_IS_DURABLE) || isThere else { return nil }
        let indexes = backend.has(CRUDD_HAS_INDEXES) ? [index] : []
        let remembers = remembersRemovals(backend)
        let collection = try backend.open(
            name, format: context.format, indexes: indexes, creates: false,
            hasSequences: remembers || backend.numbersItself)
        let reader = try backend.reader()
        let records = try reader.scan(collection)
        let numbers = records.map { Int($0.revision) ?? -1 }
        for (found, number) in zip(records, numbers) {
            context.expect(
                found == record(found.id, number, context.format),
                "record \(found.id) has the item of another write than its revision, \(number)")
        }
        verifySequences(records, backend, acknowledged, context)
        if !indexes.isEmpty { try verifyKeys(records, collection, reader, context) }
        func number(_ id: String) -> Int { records.firstIndex { $0.id == id }.map { numbers[$0] } ?? 0 }
        let (a, b) = (number("a"), number("b"))
        if backend.has(CRUDD_HAS_TRANSACTIONS) {
            context.expect(a, is: b, "the last record of the last atomic batch, compared with its first")
        }
        if remembers, a > 0 { try verifyRemovals(upTo: a, collection, reader, context) }
        var progress = Progress()
        progress.sequence = max(acknowledged.sequence, backend.storedLastSequence)
        progress.batch = min(a, b)
        guard backend.has(CRUDD_IS_DURABLE) else { return progress }
        let batch = acknowledged.batch
        context.expect(
            progress.batch >= batch, "batch \(batch) was acknowledged before the kill, \(progress.batch) is there")
        for number in max(1, batch - slots + 1)..<(batch + 1) {
            let found = records.firstIndex { $0.id == "k\(number % slots)" }.map { numbers[$0] } ?? 0
            context.expect(
                found >= number,
                "record k\(number % slots) of batch \(number), which was acknowledged before the kill, is gone or older"
            )
        }
        progress.batch = max(progress.batch, batch)
        return progress
    }

    /// What each batch has put under its own number is there, or its removal is remembered, and not both.
    private static func verifyRemovals(
        upTo batch: Int, _ collection: PluginCollection, _ reader: PluginReader, _ context: CheckContext
    ) throws(CallError) {
        let found = try reader.scan(collection, .sequences(), withItems: false).filter { $0.id.hasPrefix("x") }
        var seen: [String: Int] = [:]
        for record in found { seen[record.id, default: 0] += 1 }
        for number in 1..<(batch + 1) where seen["x\(number)"] != 1 {
            let count = seen["x\(number)"] ?? 0
            context.add("record x\(number), or its removal, is found \(count) times in a scan by sequence")
        }
    }

    /// Numbers rise with the batches. Unless the storage numbers changes itself, none is above `last_sequence`, or it
    /// would be given again.
    private static func verifySequences(
        _ records: [PluginRecord], _ backend: PluginBackend, _ acknowledged: Progress, _ context: CheckContext
    ) {
        let last = backend.storedLastSequence
        if backend.has(CRUDD_IS_DURABLE), !backend.numbersItself {
            context.expect(
                last >= acknowledged.sequence,
                "last_sequence is \(last), but \(acknowledged.sequence) was acknowledged before the kill")
        }
        for record in records where record.sequence == 0 || record.sequence > last && !backend.numbersItself {
            context.add("record \(record.id) has the sequence number \(record.sequence); last_sequence is \(last)")
        }
        let sorted = records.sorted { $0.sequence < $1.sequence }.map { Int($0.revision) ?? -1 }
        context.expect(sorted, is: sorted.sorted(), "the batches in the order of sequence numbers")
    }

    /// Each record is in the index once, with the key of its own revision.
    private static func verifyKeys(
        _ records: [PluginRecord], _ collection: PluginCollection, _ reader: PluginReader, _ context: CheckContext
    ) throws(CallError) {
        context.expect(
            try reader.scan(collection, PluginRange(.key(index: 0))).count, is: records.count, "records with a key")
        for record in records {
            let key = key(Int(record.revision) ?? -1)
            let range = PluginRange(.key(index: 0), lower: key, upper: key + [0])
            context.expect(
                try reader.scan(collection, range).contains(record),
                "record \(record.id) is not found by the key of its revision, \(record.revision)")
        }
    }
}
