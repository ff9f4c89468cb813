import CRUDPluginABI

/// Records that expire.
enum ExpiryChecks {
    /// A record is there until the millisecond at which it expires; from then on it is in no result, and not there for
    /// preconditions.
    static func expiry(_ context: CheckContext) throws {
        let backend = try context.open()
        let indexes = backend.has(CRUDD_HAS_INDEXES) ? ["x"] : []
        let collection = try context.collection(
            "expiry", of: backend, indexes: indexes, hasSequences: backend.has(CRUDD_HAS_SEQUENCES))
        let start: Int64 = 1_700_000_000_000
        backend.call.now = start
        let lifetimes: [(id: String, milliseconds: Int64)] = [
            ("a", 1000), ("b", 2000), ("c", 0), ("d", 1000), ("e", 1 << 40), ("f", 1000),
        ]
        let records = lifetimes.enumerated().map { number, life in
            PluginRecord(
                life.id, bytes: context.item(number),
                expiresAt: life.milliseconds == 0 ? 0 : start + life.milliseconds)
        }
        let keys: (PluginRecord) -> [[UInt8]] = { indexes.isEmpty || $0.id == "f" ? [] : [[1]] }
        _ = try backend.write(records.map { .put($0, keys: keys($0), in: collection) })
        for (time, ids) in [(0, "abcdef"), (999, "abcdef"), (1000, "bce"), (1999, "bce"), (2000, "ce")] {
            backend.call.now = start + Int64(time)
            let living = records.filter { ids.contains($0.id) }
            try expect(living, in: collection, "after \(time) ms", context)
        }
        backend.call.now = start + 2000
        try writeExpired(collection, records, context)
    }

    private static func expect(
        _ records: [PluginRecord], in collection: PluginCollection, _ what: String, _ context: CheckContext
    ) throws {
        let backend = collection.backend
        let reader = try backend.reader()
        let ids = ["a", "b", "c", "d", "e", "f"]
        context.expect(
            try reader.read(ids, in: collection), is: ids.map { id in records.first { $0.id == id } },
            "records that are read \(what)")
        var ranges = [PluginRange()]
        if backend.has(CRUDD_HAS_INDEXES) { ranges += [PluginRange(.key(index: 0)), PluginRange(.unkeyed(index: 0))] }
        if backend.has(CRUDD_HAS_SEQUENCES) { ranges.append(.sequences()) }
        for range in ranges {
            let expected = records.filter {
                range.order == .key(index: 0) ? $0.id != "f" : range.order != .unkeyed(index: 0) || $0.id == "f"
            }
            context.expect(try reader.scan(collection, range), is: expected, "a scan \(range) \(what)")
            context.expect(
                try reader.scan(collection, range, isReversed: true, limit: 2),
                is: Array(expected.reversed().prefix(2)),
                "a reversed scan \(range) with a limit \(what)")
            guard range.order != .sequence else { continue }
            context.expect(try reader.count(collection, range), is: expected.count, "records \(range) \(what)")
        }
    }

    /// `a`, `b`, `d` and `f` have expired.
    private static func writeExpired(
        _ collection: PluginCollection, _ records: [PluginRecord], _ context: CheckContext
    ) throws {
        let backend = collection.backend
        let item = context.item(9)
        let outcomes = try backend.write([
            .put("a", bytes: item, if: .present, in: collection),
            .put("a", bytes: item, if: .revision("1"), in: collection),
            .remove("a", in: collection), .remove("a", if: .revision("1"), in: collection),
            .put("a", bytes: item, revision: "2", if: .absent, in: collection),
            .put("b", bytes: item, revision: "2", in: collection),
            .put("c", bytes: item, revision: "2", in: collection),
        ])
        context.expect(
            outcomes, is: [.notFound, .notFound, .notFound, .notFound, .created, .created, .replaced],
            "writes of records that have expired")
        if backend.has(CRUDD_HAS_INDEXES) {
            context.expect(
                try backend.write([.setKeys("d", [[2]], ifRevision: "1", in: collection)]), is: [.notFound],
                "keys for a record that has expired")
        }
        context.expect(
            try backend.reader().scan(collection),
            is: ["a", "b", "c"].map { PluginRecord($0, bytes: item, revision: "2") } + [records[4]],
            "the records after writes of those that had expired")
    }
}
