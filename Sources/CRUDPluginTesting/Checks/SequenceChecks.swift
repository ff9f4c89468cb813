import CRUDPluginABI

/// Sequence numbers, which every plugin stores.
enum SequenceChecks {
    private static let name = "sequence numbers"

    /// A record has the number of the last put that took effect.
    static func stored(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection(name, of: backend, hasSequences: backend.numbersItself)
        let reader = try backend.reader()
        let item = context.item(1)
        // Beyond 32 bits.
        let first = backend.highestSequence + 1 << 33
        func put(_ id: String, _ offset: UInt64, _ precondition: PluginMutation.Precondition = .none) -> PluginMutation
        {
            .put(PluginRecord(id, bytes: item, sequence: first + offset), if: precondition, in: collection)
        }
        var unnumbered = PluginMutation.put("d", bytes: item, in: collection)
        unnumbered.sequence = 0
        let numbered = [
            put("a", 0), put("b", 1), put("c", 2), put("a", 3), put("b", 4, .absent), put("c", 5, .revision("?")),
        ]
        _ = try backend.write(numbered + (backend.numbersItself ? [] : [unnumbered]))
        let (ids, expected) = (["a", "b", "c", "d"], [first + 3, first + 1, first + 2, 0])
        let count = backend.numbersItself ? 3 : 4
        context.expectNumbers(
            try reader.read(Array(ids.prefix(count)), in: collection).map { $0?.sequence ?? 0 },
            is: Array(expected.prefix(count)), of: backend, "the sequence numbers of records that are read")
        context.expectNumbers(
            try reader.scan(collection, withItems: false).map(\.sequence), is: Array(expected.prefix(count)),
            of: backend, "the sequence numbers of records that are scanned")
    }

    // MARK: Numbers of the storage's own

    /// Storage that numbers changes itself does so in their order, and says up to where a scan shows all of them.
    static func own(_ context: CheckContext) throws {
        let history = try number(context)
        let backend = try context.open()
        // Otherwise nothing may be left.
        guard backend.has(CRUDD_IS_DURABLE) else { return }
        let collection = try context.collection(name, of: backend, hasSequences: true)
        let again = try backend.reader().readHistory(of: collection)
        context.expect(again.identity, is: history.identity, "the identity, opened again")
        expectNext(of: again, after: history, "opened again", context)
    }

    /// Reports a failure unless `next` is above `end`, and has not fallen.
    private static func expectNext(
        of history: PluginHistory, after before: PluginHistory, _ what: String, _ context: CheckContext
    ) {
        context.expect(history.next > history.end, "`next` is \(history.next), \(what), but `end` is \(history.end)")
        context.expect(history.next >= before.next, "`next` is \(history.next), \(what), and was \(before.next)")
    }

    /// Returns the history when all has been written.
    private static func number(_ context: CheckContext) throws -> PluginHistory {
        let backend = try context.open()
        context.expect(backend.storedLastSequence, is: 0, "last_sequence of storage that numbers changes itself")
        let collection = try context.collection(name, of: backend, hasSequences: true)
        let reader = try backend.reader()
        var history = try reader.readHistory(of: collection)
        context.expect(history.identity != 0, "the identity of the collection is 0")
        expectNext(of: history, after: history, "before any write", context)
        func put(_ id: String) -> PluginMutation { .put(id, bytes: context.item(1), in: collection) }
        let steps: [(mutations: [PluginMutation], changed: [String])] = [
            ([put("d"), put("b"), put("a")], ["d", "b", "a"]), ([put("b"), put("c")], ["b", "c"]),
            ([.remove("d", in: collection), .remove("none", in: collection)], ["d"]), ([put("e")], ["e"]),
        ]
        for step in steps {
            _ = try backend.write(step.mutations)
            let before = history
            reader.endSnapshot()
            history = try reader.readHistory(of: collection)
            context.expect(history.identity, is: before.identity, "the identity after a write")
            context.expect(history.trimmed, is: 0, "`trimmed` of read_history")
            expectNext(of: history, after: before, "after a write", context)
            let changes = try reader.scan(
                collection, .sequences(from: before.end &+ 1, to: history.end &+ 1), withItems: false)
            context.expect(
                changes.map(\.id), is: step.changed, "changes with numbers from \(before.end) to \(history.end)")
            context.expect(
                changes.filter { $0.sequence < before.next }.map(\.id), is: [],
                "changes that have come with numbers below \(before.next), which was `next`")
        }
        let found = try reader.scan(collection, .sequences())
        context.expect(found.map(\.id), is: ["a", "b", "c", "d", "e"], "records and removals by sequence")
        context.expect(found.filter(\.isRemoved).map(\.id), is: ["d"], "removals by sequence")
        try compare(found, collection, reader, context)
        let plain = try context.collection("plain", of: backend)
        context.expectFailure(CRUDD_UNSUPPORTED, of: "read_history of a collection without CRUDD_OPEN_SEQUENCES") {
            () throws(CallError) in _ = try reader.readHistory(of: plain)
        }
        return history
    }

    /// Compares scans of ranges of numbers with what a scan of all has found.
    private static func compare(
        _ found: [PluginRecord], _ collection: PluginCollection, _ reader: PluginReader, _ context: CheckContext
    ) throws {
        var model = RecordModel()
        for record in found {
            if record.isRemoved { model.remove(record.id, sequence: record.sequence) } else { model.put(record) }
        }
        let first = found.first?.sequence ?? 0
        for number in [0] + found.map(\.sequence) {
            for (lower, upper) in [(number, 0), (0, number), (first, number)] {
                let range = PluginRange.sequences(from: lower, to: upper)
                try ScanChecks.compare(range, of: model, in: collection, reader, context)
            }
        }
    }
}
