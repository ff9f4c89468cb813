import CRUDPluginABI

/// Batches of mutations and their outcomes.
enum WriteChecks {
    /// Each precondition, on a record that is there and on one that is not.
    static func preconditions(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("preconditions", of: backend)
        let before = context.item(1)
        let after = context.item(2)
        let there: [(PluginMutation.Precondition, put: PluginOutcome, remove: PluginOutcome)] = [
            (.none, .replaced, .removed), (.absent, .exists, .exists), (.present, .replaced, .removed),
            (.revision("1"), .replaced, .removed), (.revision("0"), .mismatch(current: "1"), .mismatch(current: "1")),
            (.revision("10"), .mismatch(current: "1"), .mismatch(current: "1")),
            (.revision(""), .mismatch(current: "1"), .mismatch(current: "1")),
        ]
        let gone: [(PluginMutation.Precondition, put: PluginOutcome, remove: PluginOutcome)] = [
            (.none, .created, .notFound), (.absent, .created, .notFound), (.present, .notFound, .notFound),
            (.revision("1"), .notFound, .notFound),
        ]
        let reader = try backend.reader()
        for (id, cases) in [("there", there), ("gone", gone)] {
            for (precondition, putOutcome, removeOutcome) in cases {
                let mutations: [(String, PluginOutcome, PluginMutation, PluginRecord?)] = [
                    (
                        "put", putOutcome, .put(id, bytes: after, revision: "2", if: precondition, in: collection),
                        PluginRecord(id, bytes: after, revision: "2")
                    ),
                    ("remove", removeOutcome, .remove(id, if: precondition, in: collection), nil),
                ]
                for (name, outcome, mutation, result) in mutations {
                    _ = try backend.write([
                        .put("there", bytes: before, revision: "1", in: collection), .remove("gone", in: collection),
                    ])
                    let what = "\(name) of a record that is \(id), if \(precondition)"
                    context.expect(try backend.write([mutation]), is: [outcome], what)
                    reader.endSnapshot()
                    let untouched = id == "there" ? PluginRecord("there", bytes: before, revision: "1") : nil
                    let isApplied = outcome == .created || outcome == .replaced
                    context.expect(
                        try reader.read(id, in: collection), is: isApplied ? result : untouched,
                        "the record after \(what)")
                }
            }
        }
    }

    /// Mutations of one batch see those before them, and a failed one leaves the others alone.
    static func order(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("order", of: backend)
        let items = (0..<4).map { context.item($0) }
        let outcomes = try backend.write([
            .put("a", bytes: items[1], revision: "1", if: .absent, in: collection),
            .put("a", bytes: items[2], revision: "2", if: .revision("1"), in: collection),
            .put("a", bytes: items[3], revision: "3", if: .absent, in: collection),
            .put("a", bytes: items[3], revision: "3", if: .revision("1"), in: collection),
            .put("b", bytes: items[1], revision: "1", in: collection),
            .remove("b", if: .present, in: collection),
            .remove("b", in: collection),
            .put("c", bytes: items[0], revision: "9", in: collection),
            .remove("c", in: collection),
            .put("c", bytes: items[1], revision: "10", if: .absent, in: collection),
        ])
        context.expect(
            outcomes,
            is: [
                .created, .replaced, .exists, .mismatch(current: "2"), .created, .removed, .notFound, .created,
                .removed, .created,
            ], "the outcomes of a batch")
        context.expect(
            try backend.reader().scan(collection),
            is: [
                PluginRecord("a", bytes: items[2], revision: "2"), PluginRecord("c", bytes: items[1], revision: "10"),
            ],
            "the records after the batch")
        context.expect(try backend.write([]), is: [], "the outcomes of an empty batch")
    }

    /// A kind without the precondition or the batch that it needs is refused, whether or not there is a record.
    static func undefined(_ context: CheckContext) throws {
        let backend = try context.open()
        let indexes = backend.has(CRUDD_HAS_INDEXES) ? ["x"] : []
        let collection = try context.collection("undefined", of: backend, indexes: indexes)
        let keys = indexes.map { _ in [UInt8(1)] }
        let there = PluginRecord("there", bytes: context.item(1))
        _ = try backend.write([.put(there, in: collection)])
        for id in ["there", "gone"] {
            for precondition in [PluginMutation.Precondition.none, .absent, .present] {
                context.expect(
                    try backend.write([
                        .setKeys(id, keys, if: precondition, in: collection),
                        .check(id, if: precondition, in: collection),
                    ]), is: [.unsupported, .unsupported],
                    "CRUDD_SET_KEYS and CRUDD_CHECK of a record that is \(id), if \(precondition)")
            }
        }
        context.expect(
            try backend.write([.check("there", if: .revision("1"), in: collection)]), is: [.unsupported],
            "CRUDD_CHECK in a batch that is not atomic")
        let reader = try backend.reader()
        context.expect(try reader.scan(collection), is: [there], "the records after what was refused")
        guard backend.has(CRUDD_HAS_INDEXES) else { return }
        context.expect(
            try reader.scan(collection, PluginRange(.unkeyed(index: 0))), is: [there],
            "the records without keys after what was refused")
    }

    static func large(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("large", of: backend)
        let ids = (0..<250).map { "\($0)" }
        let item = context.item(0)
        let puts = try backend.write(ids.map { .put($0, bytes: item, in: collection) })
        context.expect(puts, is: ids.map { _ in .created }, "a batch of \(ids.count) puts")
        let removals = ids.filter { $0.hasSuffix("7") }
        context.expect(
            try backend.write(removals.map { .remove($0, in: collection) }), is: removals.map { _ in .removed },
            "a batch of \(removals.count) removals")
        context.expect(
            try backend.reader().scan(collection, withItems: false).map(\.id),
            is: ids.filter { !$0.hasSuffix("7") }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) },
            "the ids after both")
    }

    static func collections(_ context: CheckContext) throws {
        let backend = try context.open()
        let collections = try (0..<20).map { try context.collection("\($0)", of: backend) }
        let mutations = collections.enumerated().flatMap { number, collection -> [PluginMutation] in
            [
                .put("id", bytes: context.item(number), in: collection),
                .put("id", bytes: context.item(number), if: .absent, in: collection),
            ]
        }
        context.expect(
            try backend.write(mutations), is: collections.flatMap { _ in [PluginOutcome.created, .exists] },
            "a batch over \(collections.count) collections")
        let reader = try backend.reader()
        for (number, collection) in collections.enumerated() {
            context.expect(
                try reader.scan(collection), is: [PluginRecord("id", bytes: context.item(number))],
                "the records of collection \(number)")
        }
    }
}
