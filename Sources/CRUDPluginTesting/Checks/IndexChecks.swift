import CRUDPluginABI

/// The keys that are stored with records.
enum IndexChecks {
    /// Expects a collection to have exactly the records and keys of a model.
    private static func expect(
        _ model: RecordModel, indexes: Int = 2, in collection: PluginCollection, _ what: String, _ context: CheckContext
    ) throws {
        let reader = try collection.backend.reader()
        context.expect(try reader.scan(collection), is: model.scan(PluginRange()), "the records \(what)")
        for index in 0..<indexes {
            for range in [PluginRange(.key(index: index)), PluginRange(.unkeyed(index: index))] {
                context.expect(
                    try reader.scan(collection, range), is: model.scan(range), "the records \(range) \(what)")
            }
        }
    }

    /// Keys come and go with their records; what is not applied leaves them alone.
    static func writes(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("keys", of: backend, indexes: ["x", "y"])
        var model = try RecordModel(ids: ["a", "b", "c", "d"], collection, context) { [[1, UInt8($0)], [9]] }
        try expect(model, in: collection, "with keys", context)

        let replaced = PluginRecord("a", bytes: context.item(7), revision: "2")
        let unkeyed = PluginRecord("b", bytes: context.item(8), revision: "2")
        let refused = PluginRecord("d", bytes: context.item(9), revision: "2")
        let outcomes = try backend.write([
            .put(replaced, keys: [[2], [8]], in: collection), .put(unkeyed, in: collection),
            .remove("c", in: collection),
            .put(refused, keys: [[3], [3]], if: .absent, in: collection),
            .put(refused, keys: [[3], [3]], if: .revision("?"), in: collection),
            .remove("d", if: .revision("?"), in: collection),
        ])
        context.expect(
            outcomes,
            is: [.replaced, .replaced, .removed, .exists, .mismatch(current: "r3"), .mismatch(current: "r3")],
            "puts and removals of records with keys")
        model.put(replaced, keys: [[2], [8]])
        model.put(unkeyed)
        model.remove("c")
        try expect(model, in: collection, "after changes", context)

        guard backend.has(CRUDD_HAS_TRANSACTIONS) else { return }
        _ = try backend.write(
            [
                .put(replaced, keys: [[5], [5]], in: collection), .remove("b", in: collection),
                .put(PluginRecord("e", bytes: context.item(1)), keys: [[5], [5]], in: collection),
                .remove("none", in: collection),
            ], isAtomic: true)
        try expect(model, in: collection, "after an atomic batch that was undone", context)
    }

    /// CRUDD_SET_KEYS changes the keys of the revision that is expected, and nothing else.
    static func setKeys(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("set keys", of: backend, indexes: ["x", "y"])
        var model = try RecordModel(ids: ["a", "b", "c", "d"], collection, context)
        try expect(model, in: collection, "without keys", context)
        let reader = try backend.reader()
        let sequences = try reader.scan(collection).map(\.sequence)

        let changed = PluginRecord("d", bytes: context.item(9), revision: "2")
        let outcomes = try backend.write([
            .setKeys("a", [[2], [7]], ifRevision: "r0", in: collection),
            .setKeys("b", [[1], []], ifRevision: "r1", in: collection),
            .setKeys("c", [[3], [3]], ifRevision: "r0", in: collection),
            .setKeys("none", [[3], [3]], ifRevision: "r0", in: collection),
            .put(changed, keys: [[4], [4]], in: collection),
            .setKeys("d", [[3], [3]], ifRevision: "r3", in: collection),
        ])
        context.expect(
            outcomes,
            is: [.passed, .passed, .mismatch(current: "r2"), .notFound, .replaced, .mismatch(current: "2")],
            "a batch that sets keys")
        model.setKeys(of: "a", [[2], [7]])
        model.setKeys(of: "b", [[1], []])
        model.put(changed, keys: [[4], [4]])
        try expect(model, in: collection, "after CRUDD_SET_KEYS", context)
        reader.endSnapshot()
        context.expect(
            Array(try reader.scan(collection).map(\.sequence).prefix(3)), is: Array(sequences.prefix(3)),
            "the sequence numbers after CRUDD_SET_KEYS")

        let unset = try backend.write([.setKeys("a", [[], [6]], ifRevision: "r0", in: collection)])
        context.expect(unset, is: [.passed], "setting an empty key")
        model.setKeys(of: "a", [[], [6]])
        try expect(model, in: collection, "after a key was taken away", context)
    }

    /// Indexes that are named in another order keep their keys; one that was dropped and added again has none.
    static func changes(_ context: CheckContext) throws {
        let backend = try context.open()
        let first = try context.collection("indexes", of: backend, indexes: ["x", "y"])
        let ids = ["a", "b", "c"]
        let written = try RecordModel(ids: ids, first, context) { [[UInt8(3 - $0)], [UInt8($0 + 10)]] }
        func open(_ indexes: [String], _ keys: (Int) -> [[UInt8]]) throws {
            let collection = try context.collection("indexes", of: backend, indexes: indexes)
            var model = RecordModel()
            for (number, id) in ids.enumerated() {
                if let record = written.records.first(where: { $0.id == id }) { model.put(record, keys: keys(number)) }
            }
            let what = "with the indexes \(indexes)"
            try expect(model, indexes: indexes.count, in: collection, what, context)
            // What was opened first is the same collection, and the positions of its indexes mean the same.
            try expect(model, indexes: indexes.count, in: first, "\(what), through what was opened first,", context)
        }
        try open(["y", "x"]) { [[UInt8($0 + 10)], [UInt8(3 - $0)]] }
        try open(["new", "y", "x"]) { [[], [UInt8($0 + 10)], [UInt8(3 - $0)]] }
        try open(["x"]) { [[UInt8(3 - $0)]] }
        try open(["y", "x"]) { [[], [UInt8(3 - $0)]] }
        try open([]) { _ in [] }
        try open(["x", "y"]) { _ in [[], []] }
    }
}
