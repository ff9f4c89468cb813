import CRUDPluginABI

/// Records that have expired are removed when the host asks for it.
enum ExpiredChecks {
    private static let start: Int64 = 1_700_000_000_000

    /// A limited number, those that expired first first, not a millisecond early, with numbers in a row; and only what
    /// was removed is emitted.
    static func removal(_ context: CheckContext) throws {
        let backend = try context.open()
        backend.call.now = start
        let isIndexed = backend.has(CRUDD_HAS_INDEXES)
        let hasSequences = backend.has(CRUDD_HAS_SEQUENCES)
        let collection = try context.collection(
            "expired", of: backend, indexes: isIndexed ? ["x"] : [], hasSequences: hasSequences)
        let lifetimes: [(id: String, milliseconds: Int64)] = [
            ("late", 3000), ("b", 2000), ("never", 0), ("a", 1000), ("c", 2500), ("long", 1 << 40),
        ]
        let records = lifetimes.map { life in
            PluginRecord(
                life.id, bytes: context.item(1), expiresAt: life.milliseconds == 0 ? 0 : start + life.milliseconds)
        }
        _ = try backend.write(records.map { .put($0, keys: isIndexed ? [[1]] : [], in: collection) })
        let steps: [(time: Int64, limit: Int, removed: [String], next: Int64)] = [
            (999, 9, [], 1000), (1000, 0, [], 1000), (1000, 9, ["a"], 2000), (2600, 1, ["b"], 2500),
            (3000, 9, ["c", "late"], 1 << 40), (1 << 40, 9, ["long"], 0), (1 << 41, 9, [], 0),
        ]
        var removals: [PluginRecord] = []
        for step in steps {
            backend.call.now = start + step.time
            let first = backend.highestSequence + 1
            let (removed, next) = try backend.removeExpired(from: collection, limit: step.limit)
            let what = "with the limit \(step.limit) after \(step.time) ms"
            context.expect(removed.map(\.id), is: step.removed, "what was removed \(what)")
            if !backend.numbersItself {
                context.expect(
                    removed.map(\.sequence), is: step.removed.indices.map { first + UInt64($0) },
                    "the numbers of what was removed \(what)")
            }
            let expected = step.next == 0 ? 0 : start + step.next
            // It may be too low, but not by what was removed.
            context.expect(
                (next == 0) == (expected == 0) && next <= expected, "next_expiry is \(next) \(what), not \(expected)")
            removals += removed
        }
        try expectGone(collection, removals, context)
    }

    /// By the clock of the time when nothing had expired.
    private static func expectGone(
        _ collection: PluginCollection, _ removals: [PluginRecord], _ context: CheckContext
    ) throws {
        let backend = collection.backend
        backend.call.now = start
        let reader = try backend.reader()
        context.expect(try reader.scan(collection).map(\.id), is: ["never"], "what is left")
        context.expect(
            try reader.read(removals.map(\.id), in: collection), is: removals.map { _ in nil },
            "what was removed is still there")
        if backend.has(CRUDD_HAS_INDEXES) {
            context.expect(
                try reader.scan(collection, PluginRange(.key(index: 0))).map(\.id), is: ["never"],
                "the keys that are left")
        }
        guard backend.has(CRUDD_HAS_SEQUENCES) else { return }
        let found = try reader.scan(collection, .sequences()).filter(\.isRemoved)
        context.expect(found, is: removals, "the removals that are remembered")
        if backend.numbersItself { return }
        context.expect(found.map(\.sequence), is: removals.map(\.sequence), "the numbers of these removals")
    }

    /// The numbers count for `last_sequence`, the removals for what is there after it is opened again.
    static func reopening(_ context: CheckContext) throws {
        let sequence = try removeOne(context)
        let backend = try context.open()
        guard try backend.has(CRUDD_IS_DURABLE) || backend.collections().contains(context.name("expired")) else {
            return
        }
        context.expect(
            backend.numbersItself || backend.storedLastSequence >= sequence,
            "last_sequence is \(backend.storedLastSequence), but \(sequence) was given to a removal")
        backend.call.now = start
        let collection = try context.collection(
            "expired", of: backend, hasSequences: backend.has(CRUDD_HAS_SEQUENCES))
        context.expect(try backend.reader().scan(collection).map(\.id), is: ["b"], "what is left, opened again")
        backend.call.now = start + 5000
        let (removed, next) = try backend.removeExpired(from: collection, limit: 9)
        context.expect(removed.map(\.id), is: ["b"], "what was removed, opened again")
        context.expect(next, is: 0, "next_expiry, opened again")
    }

    private static func removeOne(_ context: CheckContext) throws -> UInt64 {
        let backend = try context.open()
        backend.call.now = start
        let collection = try context.collection(
            "expired", of: backend, hasSequences: backend.has(CRUDD_HAS_SEQUENCES))
        _ = try backend.write(
            [("a", 1000), ("b", 5000)].map { id, milliseconds in
                .put(
                    PluginRecord(id, bytes: context.item(1), expiresAt: start + Int64(milliseconds)), in: collection)
            })
        backend.call.now = start + 1000
        // Behind every block of numbers that the plugin may have reserved.
        backend.skipSequences(1 << 33)
        let (removed, _) = try backend.removeExpired(from: collection, limit: 9)
        context.expect(removed.map(\.id), is: ["a"], "what was removed")
        return backend.highestSequence
    }
}
