import CRUDPluginABI

/// Batches of mutations and what each of them comes to.
enum WriteChecks {
    /// Each precondition, on a record that is there and on one that is not.
    static func preconditions(_ trial: Trial) throws {
        let backend = try trial.open()
        let collection = try trial.collection("preconditions", of: backend)
        let before = Sample.item(1, trial.format)
        let after = Sample.item(2, trial.format)
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
                    trial.expect(try backend.write([mutation]), is: [outcome], what)
                    reader.endSnapshot()
                    let untouched = id == "there" ? PluginRecord("there", bytes: before, revision: "1") : nil
                    let isApplied = outcome == .created || outcome == .replaced
                    trial.expect(
                        try reader.read(id, in: collection), is: isApplied ? result : untouched,
                        "the record after \(what)")
                }
            }
        }
    }

    /// Mutations of one batch see those before them, and a failed one leaves the others alone.
    static func order(_ trial: Trial) throws {
        let backend = try trial.open()
        let collection = try trial.collection("order", of: backend)
        let items = (0..<4).map { Sample.item($0, trial.format) }
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
        trial.expect(
            outcomes,
            is: [
                .created, .replaced, .exists, .mismatch(current: "2"), .created, .removed, .notFound, .created,
                .removed,
                .created,
            ], "the outcomes of a batch")
        trial.expect(
            try backend.reader().scan(collection),
            is: [
                PluginRecord("a", bytes: items[2], revision: "2"), PluginRecord("c", bytes: items[1], revision: "10"),
            ],
            "the records after the batch")
        trial.expect(try backend.write([]), is: [], "the outcomes of an empty batch")
    }

    static func large(_ trial: Trial) throws {
        let backend = try trial.open()
        let collection = try trial.collection("large", of: backend)
        let ids = (0..<250).map { "\($0)" }
        let item = Sample.item(0, trial.format)
        let puts = try backend.write(ids.map { .put($0, bytes: item, in: collection) })
        trial.expect(puts, is: ids.map { _ in .created }, "a batch of \(ids.count) puts")
        let removals = ids.filter { $0.hasSuffix("7") }
        trial.expect(
            try backend.write(removals.map { .remove($0, in: collection) }), is: removals.map { _ in .removed },
            "a batch of \(removals.count) removals")
        trial.expect(
            try backend.reader().scan(collection, withItems: false).map(\.id),
            is: ids.filter { !$0.hasSuffix("7") }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) },
            "the ids after both")
    }

    static func collections(_ trial: Trial) throws {
        let backend = try trial.open()
        let collections = try (0..<20).map { try trial.collection("\($0)", of: backend) }
        let mutations = collections.enumerated().flatMap { number, collection -> [PluginMutation] in
            [
                .put("id", bytes: Sample.item(number, trial.format), in: collection),
                .put("id", bytes: Sample.item(number, trial.format), if: .absent, in: collection),
            ]
        }
        trial.expect(
            try backend.write(mutations), is: collections.flatMap { _ in [PluginOutcome.created, .exists] },
            "a batch over \(collections.count) collections")
        let reader = try backend.reader()
        for (number, collection) in collections.enumerated() {
            trial.expect(
                try reader.scan(collection), is: [PluginRecord("id", bytes: Sample.item(number, trial.format))],
                "the records of collection \(number)")
        }
    }

    // MARK: Atomic batches

    /// A batch that fails somewhere undoes all, over several collections; one that does not takes effect.
    static func atomic(_ trial: Trial) throws {
        let backend = try trial.open()
        let one = try trial.collection("one", of: backend)
        let other = try trial.collection("other", of: backend)
        let item = Sample.item(1, trial.format)
        let changed = Sample.item(2, trial.format)
        _ = try backend.write([.put("kept", bytes: item, revision: "k", in: one)])
        let reader = try backend.reader()
        let failures: [(PluginMutation, PluginOutcome)] = [
            (.remove("none", in: other), .notFound), (.put("kept", bytes: item, if: .absent, in: one), .exists),
            (.put("b", bytes: item, if: .absent, in: other), .exists),
            (.put("kept", bytes: item, if: .revision("k"), in: one), .mismatch(current: "2")),
        ]
        for (failing, outcome) in failures {
            let outcomes = try backend.write(
                [
                    .put("a", bytes: item, in: one), .put("b", bytes: item, in: other),
                    .put("kept", bytes: changed, revision: "2", in: one), failing, .put("c", bytes: item, in: one),
                ], isAtomic: true)
            trial.expect(outcomes[3], is: outcome, "the outcome that undoes an atomic batch")
            reader.endSnapshot()
            trial.expect(
                try reader.scan(one), is: [PluginRecord("kept", bytes: item, revision: "k")],
                "what an undone batch has left of the first collection")
            trial.expect(try reader.count(other), is: 0, "what an undone batch has left in the second collection")
        }
        let applied = try backend.write(
            [
                .put("a", bytes: item, in: one), .put("b", bytes: item, in: other),
                .put("a", bytes: changed, revision: "2", if: .revision("1"), in: one), .remove("kept", in: one),
            ], isAtomic: true)
        trial.expect(applied, is: [.created, .created, .replaced, .removed], "an atomic batch")
        reader.endSnapshot()
        trial.expect(
            try reader.scan(one), is: [PluginRecord("a", bytes: changed, revision: "2")],
            "the first collection after an atomic batch")
        trial.expect(
            try reader.scan(other), is: [PluginRecord("b", bytes: item)], "the second collection after an atomic batch")
    }

    /// Checks change nothing, and one that fails undoes all.
    static func checks(_ trial: Trial) throws {
        let backend = try trial.open()
        let collection = try trial.collection("checks", of: backend)
        let there = PluginRecord("there", bytes: Sample.item(1, trial.format))
        _ = try backend.write([.put("there", bytes: there.bytes, in: collection)])
        let other = PluginMutation.put("other", bytes: there.bytes, in: collection)
        let reader = try backend.reader()
        let refusals: [(String, PluginMutation.Precondition, PluginOutcome)] = [
            ("there", .absent, .exists), ("there", .revision("0"), .mismatch(current: "1")),
            ("gone", .present, .notFound), ("gone", .revision("1"), .notFound), ("other", .absent, .exists),
        ]
        for (id, precondition, expected) in refusals {
            let outcomes = try backend.write([other, .check(id, if: precondition, in: collection)], isAtomic: true)
            trial.expect(outcomes[1], is: expected, "a check of \(id), if \(precondition)")
            reader.endSnapshot()
            trial.expect(try reader.scan(collection), is: [there], "the records after a failed check of \(id)")
        }
        let permitted: [(String, PluginMutation.Precondition)] = [
            ("there", .present), ("there", .revision("1")), ("gone", .absent), ("other", .present), ("gone", .none),
        ]
        for (id, precondition) in permitted {
            let outcomes = try backend.write([other, .check(id, if: precondition, in: collection)], isAtomic: true)
            trial.expect(outcomes, is: [.created, .created], "a check of \(id), if \(precondition)")
            trial.expect(
                try backend.write([.remove("other", in: collection)]), is: [.removed],
                "the batch of a check of \(id), if \(precondition)")
        }
        reader.endSnapshot()
        trial.expect(try reader.scan(collection), is: [there], "the records after checks alone")
    }

    /// What is not declared is refused whole.
    static func undeclared(_ trial: Trial) throws {
        let backend = try trial.open()
        let collection = try trial.collection("undeclared", of: backend)
        let item = Sample.item(1, trial.format)
        let reader = try backend.reader()
        if backend.capabilities & UInt64(CRUDD_HAS_TRANSACTIONS) == 0 {
            trial.expectFailure(CRUDD_UNSUPPORTED, of: "an atomic batch without CRUDD_HAS_TRANSACTIONS") {
                () throws(CallFault) in
                _ = try backend.write([.put("a", bytes: item, in: collection)], isAtomic: true)
            }
        }
        if backend.capabilities & UInt64(CRUDD_CAN_QUERY) == 0 {
            trial.expectFailure(CRUDD_UNSUPPORTED, of: "a count with a filter without CRUDD_CAN_QUERY") {
                () throws(CallFault) in _ = try reader.count(collection, filter: "false")
            }
        }
        trial.expect(try reader.count(collection), is: 0, "records after what was refused")
    }
}
