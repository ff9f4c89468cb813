import CRUDPluginABI

/// Reading, walking and counting, against what an array of the same records says.
enum ReadChecks {
    /// By byte, `Z` stands before `a`, "é" behind both, and a text before the longer ones that begin with it.
    private static let ids = [
        "B", "Z", "a", "a!", "a.b", "ab", "abc", "ab\u{E9}", "b", "z", "~", "\u{E9}", "\u{FFFD}", "\u{1F600}",
    ]

    private static func fill(_ backend: PluginBackend, _ trial: Trial) throws -> PluginCollection {
        let collection = try trial.collection("reading", of: backend)
        let mutations = ids.enumerated().map { number, id in
            PluginMutation.put(id, bytes: Sample.item(number, trial.format), revision: "r\(number)", in: collection)
        }
        trial.expect(try backend.write(mutations.shuffled()), is: ids.map { _ in .created }, "puts")
        return collection
    }

    private static func record(_ number: Int, _ trial: Trial, withItems: Bool = true) -> PluginRecord {
        PluginRecord(
            ids[number], bytes: withItems ? Sample.item(number, trial.format) : [], revision: "r\(number)")
    }

    static func read(_ trial: Trial) throws {
        let backend = try trial.open()
        let collection = try fill(backend, trial)
        let reader = try backend.reader()
        let asked = [5, nil, 5, 11, nil, 0]
        for withItems in [true, false] {
            trial.expect(
                try reader.read(asked.map { $0.map { ids[$0] } ?? "none" }, in: collection, withItems: withItems),
                is: asked.map { $0.map { record($0, trial, withItems: withItems) } },
                withItems ? "records at the positions asked for" : "records without items")
        }
        trial.expect(try reader.read([], in: collection), is: [], "records for no ids")
        for id in ["A", "aB", "e\u{301}", "ab ", "\u{1F601}"] {
            trial.expect(try reader.read(id, in: collection), is: nil, "a record for \(id.debugDescription)")
        }
    }

    static func scan(_ trial: Trial) throws {
        let backend = try trial.open()
        let collection = try fill(backend, trial)
        let reader = try backend.reader()
        for after in ["", "A", "B", "a", "a!", "aa", "ab", "z", "\u{1F600}"] {
            for prefix in ["", "a", "ab", "abcd", "b", "\u{E9}", "\u{1F600}"] {
                for limit in [0, 1, 2, 100] {
                    let numbers = matching(after: after, prefix: prefix).prefix(limit == 0 ? .max : limit)
                    let withItems = limit != 2
                    let records = try reader.scan(
                        collection, after: after, prefix: prefix, limit: limit, withItems: withItems)
                    trial.expect(
                        records, is: numbers.map { record($0, trial, withItems: withItems) },
                        "a walk after \(after.debugDescription) with prefix \(prefix.debugDescription) and limit \(limit)"
                    )
                }
            }
        }
        for stop in 1...3 {
            trial.expect(
                try reader.scan(collection, stopAfter: stop).map(\.id), is: Array(ids.prefix(stop)),
                "a walk that is stopped after \(stop)")
        }
    }

    static func count(_ trial: Trial) throws {
        let backend = try trial.open()
        let collection = try fill(backend, trial)
        let reader = try backend.reader()
        for prefix in ["", "a", "ab", "abcd", "b", "\u{E9}", "\u{1F600}"] {
            trial.expect(
                try reader.count(collection, prefix: prefix), is: matching(after: "", prefix: prefix).count,
                "records with prefix \(prefix.debugDescription)")
        }
    }

    private static func matching(after: String, prefix: String) -> [Int] {
        ids.indices.filter {
            ids[$0].utf8.starts(with: prefix.utf8) && after.utf8.lexicographicallyPrecedes(ids[$0].utf8)
        }
    }

    /// After end_snapshot, a reader sees every write that was answered; so does a new reader.
    static func visibility(_ trial: Trial) throws {
        let backend = try trial.open()
        let collection = try trial.collection("visibility", of: backend)
        let reader = try backend.reader()
        var expected: [PluginRecord] = []
        for number in 0..<20 {
            let record = PluginRecord("a\(number)", bytes: Sample.item(number, trial.format), revision: "\(number)")
            _ = try reader.scan(collection)
            _ = try backend.write([.put(record.id, bytes: record.bytes, revision: record.revision, in: collection)])
            expected.append(record)
            expected.sort { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }
            if number.isMultiple(of: 3) {
                let removed = expected.removeFirst()
                _ = try backend.write([.remove(removed.id, in: collection)])
            }
            reader.endSnapshot()
            trial.expect(try reader.scan(collection), is: expected, "a walk after end_snapshot")
            trial.expect(try reader.count(collection), is: expected.count, "a count after end_snapshot")
            trial.expect(try backend.reader().scan(collection), is: expected, "a walk of a new reader")
            if number.isMultiple(of: 5) { backend.idle() }
        }
    }

    /// A read of a few ids takes microseconds.
    static func speed(_ trial: Trial) throws {
        let maximum = Duration.milliseconds(1)
        let backend = try trial.open()
        let collection = try fill(backend, trial)
        let reader = try backend.reader()
        let clock = ContinuousClock()
        var durations: [Duration] = []
        for _ in 0..<201 {
            durations.append(try clock.measure { _ = try reader.read(["a", "none", "z"], in: collection) })
        }
        let median = durations.sorted()[durations.count / 2]
        trial.expect(median < maximum, "reading three ids takes \(median) where CRUDD_CAN_READ_FAST is declared")
    }
}
