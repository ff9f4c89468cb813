import CRUDPluginABI

/// Batches that take effect as a whole or not at all.
enum AtomicWriteChecks {
    /// A batch that fails somewhere undoes all, over several collections; one that does not takes effect.
    static func batches(_ context: CheckContext) throws {
        let backend = try context.open()
        let one = try context.collection("one", of: backend)
        let other = try context.collection("other", of: backend)
        let item = context.item(1)
        let changed = context.item(2)
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
            context.expect(outcomes[3], is: outcome, "the outcome that undoes an atomic batch")
            reader.endSnapshot()
            context.expect(
                try reader.scan(one), is: [PluginRecord("kept", bytes: item, revision: "k")],
                "what an undone batch has left of the first collection")
            context.expect(try reader.count(other), is: 0, "what an undone batch has left in the second collection")
        }
        let applied = try backend.write(
            [
                .put("a", bytes: item, in: one), .put("b", bytes: item, in: other),
                .put("a", bytes: changed, revision: "2", if: .revision("1"), in: one), .remove("kept", in: one),
            ], isAtomic: true)
        context.expect(applied, is: [.created, .created, .replaced, .removed], "an atomic batch")
        reader.endSnapshot()
        context.expect(
            try reader.scan(one), is: [PluginRecord("a", bytes: changed, revision: "2")],
            "the first collection after an atomic batch")
        context.expect(
            try reader.scan(other), is: [PluginRecord("b", bytes: item)], "the second collection after an atomic batch")
    }

    /// Checks change nothing, and one that fails undoes all.
    static func checks(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("checks", of: backend)
        let there = PluginRecord("there", bytes: context.item(1))
        _ = try backend.write([.put("there", bytes: there.bytes, in: collection)])
        let other = PluginMutation.put("other", bytes: there.bytes, in: collection)
        let reader = try backend.reader()
        let refusals: [(String, PluginMutation.Precondition, PluginOutcome)] = [
            ("there", .absent, .exists), ("there", .revision("0"), .mismatch(current: "1")),
            ("gone", .present, .notFound), ("gone", .revision("1"), .notFound), ("other", .absent, .exists),
        ]
        for (id, precondition, expected) in refusals {
            let outcomes = try backend.write([other, .check(id, if: precondition, in: collection)], isAtomic: true)
            context.expect(outcomes[1], is: expected, "a check of \(id), if \(precondition)")
            reader.endSnapshot()
            context.expect(try reader.scan(collection), is: [there], "the records after a failed check of \(id)")
        }
        let permitted: [(String, PluginMutation.Precondition)] = [
            ("there", .present), ("there", .revision("1")), ("gone", .absent), ("other", .present), ("gone", .none),
        ]
        for (id, precondition) in permitted {
            let outcomes = try backend.write([other, .check(id, if: precondition, in: collection)], isAtomic: true)
            context.expect(outcomes, is: [.created, .passed], "a check of \(id), if \(precondition)")
            context.expect(
                try backend.write([.remove("other", in: collection)]), is: [.removed],
                "the batch of a check of \(id), if \(precondition)")
        }
        reader.endSnapshot()
        context.expect(try reader.scan(collection), is: [there], "the records after checks alone")
    }
}
