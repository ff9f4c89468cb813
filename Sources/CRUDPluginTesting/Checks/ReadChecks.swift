import CRUDPluginABI

/// Reading by id.
enum ReadChecks {
    static func read(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("reading", of: backend)
        let model = try RecordModel(ids: RecordModel.ids, collection, context)
        let reader = try backend.reader()
        let positions = [5, nil, 5, 11, nil, 0]
        for withItems in [true, false] {
            let expected = positions.map { position in
                position.map { withItems ? model.records[$0] : model.records[$0].withoutItem }
            }
            for toWrite in [false, true] {
                let found = try reader.read(
                    positions.map { $0.map { model.records[$0].id } ?? "none" }, in: collection, withItems: withItems,
                    toWrite: toWrite)
                let what = withItems ? "records at the positions asked for" : "records without items"
                context.expect(found, is: expected, toWrite ? "\(what), to be written" : what)
            }
            reader.endSnapshot()
        }
        context.expect(try reader.read([], in: collection), is: [], "records for no ids")
        for id in ["A", "aB", "e\u{301}", "ab ", "\u{1F601}"] {
            context.expect(try reader.read(id, in: collection), is: nil, "a record for \(id.debugDescription)")
        }
    }

    /// After end_snapshot, a reader sees every write that was acknowledged; so does a new reader.
    static func visibility(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("visibility", of: backend)
        let reader = try backend.reader()
        var expected: [PluginRecord] = []
        for number in 0..<20 {
            let record = PluginRecord("a\(number)", bytes: context.item(number), revision: "\(number)")
            _ = try reader.scan(collection)
            _ = try backend.write([.put(record, in: collection)])
            expected.append(record)
            expected.sort { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }
            if number.isMultiple(of: 3) {
                let removed = expected.removeFirst()
                _ = try backend.write([.remove(removed.id, in: collection)])
            }
            reader.endSnapshot()
            context.expect(try reader.scan(collection), is: expected, "a scan after end_snapshot")
            context.expect(try reader.count(collection), is: expected.count, "a count after end_snapshot")
            context.expect(try backend.reader().scan(collection), is: expected, "a scan of a new reader")
            if number.isMultiple(of: 5) { backend.idle() }
        }
    }

    /// A read of a few ids takes microseconds.
    static func speed(_ context: CheckContext) throws {
        let maximum = Duration.milliseconds(1)
        let backend = try context.open()
        let collection = try context.collection("reading", of: backend)
        _ = try RecordModel(ids: ["a", "z"], collection, context)
        let reader = try backend.reader()
        let clock = ContinuousClock()
        var durations: [Duration] = []
        for _ in 0..<201 {
            durations.append(try clock.measure { _ = try reader.read(["a", "none", "z"], in: collection) })
        }
        let median = durations.sorted()[durations.count / 2]
        context.expect(median < maximum, "reading three ids takes \(median) where CRUDD_CAN_READ_FAST is declared")
    }
}
