import CRUDPluginABI

/// What a collection that keeps sequence numbers remembers of records that were removed.
enum RemovalChecks {
    private static let start: Int64 = 1_700_000_000_000

    private static func open(
        _ context: CheckContext, hasSequences: Bool = true
    ) throws(CallError) -> (PluginBackend, PluginCollection) {
        let backend = try context.open()
        backend.call.now = start
        return (backend, try context.collection("removals", of: backend, hasSequences: hasSequences))
    }

    /// The last removal that a scan by sequence finds of each record that is not there. An earlier one may be left out.
    private static func removals(_ collection: PluginCollection) throws(CallError) -> [PluginRecord] {
        let found = try collection.backend.reader().scan(collection, .sequences())
        return found.indices.filter { index in
            found[index].isRemoved && !found[(index + 1)...].contains { $0.id == found[index].id }
        }.map { found[$0] }
    }

    // MARK: Remembering

    /// Each removal that took effect is remembered with its number, and nothing else is.
    static func removals(_ context: CheckContext) throws {
        let (backend, collection) = try open(context)
        let item = context.item(1)
        _ = try backend.write(["a", "b", "c", "d"].map { .put($0, bytes: item, in: collection) })
        let first = backend.highestSequence + 1
        let outcomes = try backend.write([
            .remove("b", in: collection), .remove("none", in: collection),
            .remove("a", if: .revision("?"), in: collection),
            .remove("c", if: .absent, in: collection), .put("e", bytes: item, in: collection),
            .remove("e", if: .present, in: collection), .remove("d", if: .revision("1"), in: collection),
            .put("d", bytes: item, revision: "2", in: collection),
        ])
        context.expect(
            outcomes,
            is: [
                .removed, .notFound, .mismatch(current: "1"), .exists, .created, .removed, .removed, .created,
            ], "a batch with removals")
        let removals = try removals(collection)
        context.expect(removals.map(\.id), is: ["b", "e"], "what was removed")
        context.expectNumbers(
            removals.map(\.sequence), is: [first, first + 5], of: backend, "the numbers of removals")
        let reader = try backend.reader()
        context.expect(
            try reader.scan(collection, .sequences()).filter { !$0.isRemoved }.map(\.id), is: ["a", "c", "d"],
            "the records in a scan by sequence")
        context.expect(try reader.count(collection, .sequences()), is: 3, "records, counted by sequence")
        context.expect(try reader.scan(collection).map(\.id), is: ["a", "c", "d"], "the records in a scan by id")
        context.expect(try reader.read(["b"], in: collection), is: [nil], "a record that was removed")
        try undone(collection, context)
        _ = try backend.write([.remove("d", in: collection), .put("b", bytes: item, in: collection)])
        context.expect(
            try Self.removals(collection).map(\.id), is: ["e", "d"], "what was removed, and not stored again")
    }

    /// An atomic batch that fails removes nothing.
    private static func undone(_ collection: PluginCollection, _ context: CheckContext) throws {
        let backend = collection.backend
        guard backend.has(CRUDD_HAS_TRANSACTIONS) else { return }
        _ = try backend.write(
            [.remove("a", in: collection), .remove("none", in: collection)], isAtomic: true)
        context.expect(
            try removals(collection).map(\.id), is: ["b", "e"], "what was removed after an atomic batch that failed")
    }

    // MARK: History

    /// Old removals are forgotten, the oldest first, and the collection knows that.
    static func trimming(_ context: CheckContext) throws {
        let (backend, collection) = try open(context)
        _ = try backend.write((0..<6).map { .put("\($0)", bytes: context.item($0), in: collection) })
        for number in 0..<6 {
            backend.call.now = start + Int64(number) * 1000
            _ = try backend.write([.remove("\(number)", in: collection)])
        }
        let numbers = try removals(collection).map(\.sequence)
        context.expect(numbers.count, is: 6, "removals that are remembered")
        guard numbers.count == 6 else { return }
        let identity = try backend.history(of: collection).identity
        context.expect(identity != 0, "the identity of the collection is 0")
        func trim(before: Int64, limit: Int, trimmed: UInt64, forgotten: UInt64, left: [String]) throws {
            let history = try backend.history(of: collection, trimming: limit, before: start + before)
            let what = "up to \(limit) removals before \(before) ms"
            context.expect(history.trimmed, is: trimmed, "forgotten: \(what)")
            context.expect(history.forgotten, is: forgotten, "the highest number that was forgotten: \(what)")
            context.expect(history.identity, is: identity, "the identity: \(what)")
            context.expect(try removals(collection).map(\.id), is: left, "what is remembered: \(what)")
        }
        try trim(before: 10_000, limit: 0, trimmed: 0, forgotten: 0, left: ["0", "1", "2", "3", "4", "5"])
        try trim(before: 0, limit: 9, trimmed: 0, forgotten: 0, left: ["0", "1", "2", "3", "4", "5"])
        try trim(before: 2000, limit: 9, trimmed: 2, forgotten: numbers[1], left: ["2", "3", "4", "5"])
        try trim(before: 10_000, limit: 1, trimmed: 1, forgotten: numbers[2], left: ["3", "4", "5"])
        try trim(before: 4000, limit: 9, trimmed: 1, forgotten: numbers[3], left: ["4", "5"])
    }

    /// What is remembered outlasts the backend. It ends with the collection, and when that is opened without.
    static func history(_ context: CheckContext) throws {
        let identity = try removeAndTrim(context)
        do {
            let (backend, collection) = try open(context)
            // Of a plugin that does not declare CRUDD_IS_DURABLE nothing may be left.
            if try backend.has(CRUDD_IS_DURABLE) || backend.reader().count(collection) > 0 {
                let history = try backend.history(of: collection)
                context.expect(
                    history.identity, is: identity.value, "the identity of a collection that is opened again")
                context.expect(history.forgotten, is: identity.forgotten, "what was forgotten, opened again")
                context.expect(try removals(collection).map(\.id), is: ["b"], "what is remembered, opened again")
            } else {
                _ = try backend.write([.put("c", bytes: context.item(1), in: collection)])
            }
            // Others may still have it open with that.
            if backend.numbersItself { return }
            let plain = try context.collection("removals", of: backend)
            context.expectFailure(CRUDD_UNSUPPORTED, of: "the history of a collection without CRUDD_OPEN_SEQUENCES") {
                () throws(CallError) in _ = try backend.history(of: plain)
            }
            _ = try backend.write([.remove("c", in: plain)])
            let again = try context.collection("removals", of: backend, hasSequences: true)
            context.expect(try removals(again), is: [], "what is remembered of the time without CRUDD_OPEN_SEQUENCES")
            let history = try backend.history(of: again)
            context.expect(history.identity != identity.value, "the identity is that of before")
            context.expect(history.forgotten, is: 0, "what was forgotten, with a new identity")
            try backend.drop(context.name("removals"))
            let new = try context.collection("removals", of: backend, hasSequences: true)
            context.expect(
                try backend.history(of: new).identity != history.identity,
                "a new collection has the identity of another")
        }
    }

    /// Leaves the record `c`, the removal of `b`, and that of `a` forgotten.
    private static func removeAndTrim(
        _ context: CheckContext
    ) throws -> (value: UInt64, forgotten: UInt64) {
        let (backend, collection) = try open(context)
        _ = try backend.write(["a", "b", "c"].map { .put($0, bytes: context.item(1), in: collection) })
        _ = try backend.write([.remove("a", in: collection)])
        let forgotten = try removals(collection).first?.sequence ?? backend.highestSequence
        backend.call.now = start + 1000
        _ = try backend.write([.remove("b", in: collection)])
        let history = try backend.history(of: collection, trimming: 9, before: start + 1)
        context.expect(history.forgotten, is: forgotten, "what was forgotten")
        return (history.identity, forgotten)
    }

    // MARK: Taking over

    /// A collection whose records were moved here continues their history, with their numbers, and does so when the
    /// backend is opened again.
    static func taking(_ context: CheckContext) throws {
        let identity: UInt64 = 4_611_686_018_427_387_907
        var last: UInt64 = 0
        func look(_ collection: PluginCollection, _ when: String) throws {
            let found = try collection.backend.reader().scan(collection, .sequences())
            context.expect(found.map(\.id), is: ["x", "b", "y", "a"], "records and removals by sequence, \(when)")
            context.expect(found.map(\.isRemoved), is: [true, false, true, false], "what was removed, \(when)")
            context.expect(
                found.map(\.sequence), is: [last - 40, last - 30, last - 20, last - 10], "their numbers, \(when)")
            let history = try collection.backend.history(of: collection)
            context.expect(history.identity, is: identity, "the identity that was taken over, \(when)")
            context.expect(history.forgotten, is: last - 50, "what was forgotten elsewhere, \(when)")
        }
        do {
            let (backend, collection) = try open(context)
            if backend.numbersItself { throw NotApplicable.numbersItself }
            last = backend.highestSequence + 3_000_000
            try backend.takeHistory(of: collection, identity: identity, forgotten: 0, lastSequence: last)
            // Copies, in any order; that of a record which is removed again leaves nothing behind.
            _ = try backend.write(
                [("a", last - 10), ("b", last - 30), ("c", last - 25)].map { id, sequence in
                    .put(PluginRecord(id, bytes: context.item(1), sequence: sequence), in: collection)
                })
            var removal = PluginMutation.remove("c", in: collection)
            removal.sequence = 0
            context.expect(try backend.write([removal]), is: [.removed], "the removal of a copy")
            for forgotten in [last - 60, last - 50] {
                try backend.takeHistory(
                    of: collection, identity: identity, forgotten: forgotten, lastSequence: last,
                    removals: [("y", last - 20), ("x", last - 40)])
            }
            try look(collection, "once they have been taken over")
            let plain = try context.collection("plain", of: backend)
            context.expectFailure(CRUDD_UNSUPPORTED, of: "take_history of a collection without CRUDD_OPEN_SEQUENCES") {
                () throws(CallError) in
                try backend.takeHistory(of: plain, identity: identity, forgotten: 0, lastSequence: last)
            }
        }
        let (backend, collection) = try open(context)
        if try !backend.has(CRUDD_IS_DURABLE) && backend.reader().count(collection) == 0 { return }
        let stored = backend.storedLastSequence
        context.expect(stored >= last, "last_sequence is \(stored), not \(last)")
        try look(collection, "opened again")
    }
}
