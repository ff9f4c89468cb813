import CRUDPluginABI

/// What is there when the storage is opened again.
enum DurabilityChecks {
    /// Records with all of their fields, keys and collections outlast their backend. Of a plugin that does not declare
    /// CRUDD_IS_DURABLE whatever is left must be whole.
    static func reopening(_ context: CheckContext) throws {
        let (model, lastSequence, identity) = try write(context.open(), context)
        if identity != 0 {
            context.expectFailure(CRUDD_NOT_FOUND, of: "open of another storage than the expected one") {
                () throws(CallError) in _ = try context.open(expectedStorage: identity ^ 2)
            }
        }
        let backend = try context.open(expectedStorage: identity)
        let found = try backend.collections()
        guard backend.has(CRUDD_IS_DURABLE) || found.contains(context.name("reopening")) else { return }
        context.expect(found.contains(context.name("reopening")), "a collection is not listed any more")
        context.expect(found.contains(context.name("empty")), "an empty collection is not listed any more")
        context.expect(
            backend.numbersItself || backend.storedLastSequence >= lastSequence,
            "last_sequence is \(backend.storedLastSequence), but \(lastSequence) was written")
        context.expect(backend.identity, is: identity, "the identity of the storage, opened again")
        let collection = try backend.open(
            context.name("reopening"), format: context.format, indexes: indexes(of: backend), creates: false,
            hasSequences: backend.numbersItself)
        try expect(model, in: collection, context)
        let id = model.records[0].id
        context.expect(
            try backend.write([.put(id, bytes: context.item(1), if: .revision("?"), in: collection)]),
            is: [.mismatch(current: "r0")], "a put on a wrong revision")
    }

    private static func indexes(of backend: PluginBackend) -> [String] {
        backend.has(CRUDD_HAS_INDEXES) ? ["x", "y"] : []
    }

    /// Returns what there is to find afterwards, the highest sequence number, and the identity of the storage.
    private static func write(
        _ backend: PluginBackend, _ context: CheckContext
    ) throws -> (model: RecordModel, lastSequence: UInt64, identity: UInt64) {
        var model = RecordModel()
        let indexes = indexes(of: backend)
        let expiresAt = backend.has(CRUDD_HAS_EXPIRY) ? PluginCall.currentTime + 1 << 40 : 0
        let collection = try context.collection(
            "reopening", of: backend, indexes: indexes, hasSequences: backend.numbersItself)
        _ = try context.collection("empty", of: backend)
        let first = backend.highestSequence + 1
        var puts: [PluginMutation] = []
        for number in 0..<50 {
            let record = PluginRecord(
                "id \(number)/%", bytes: context.item(number, padding: number * 100), revision: "r\(number)",
                expiresAt: number.isMultiple(of: 3) ? expiresAt : 0, sequence: first + UInt64(number))
            let keys: [[UInt8]] = indexes.isEmpty ? [] : [[UInt8(60 - number)], number.isMultiple(of: 7) ? [] : [1]]
            model.put(record, keys: keys)
            puts.append(.put(record, keys: keys, in: collection))
        }
        _ = try backend.write(puts)
        _ = try backend.write([.put("gone", bytes: context.item(1), in: collection)])
        _ = try backend.write([.remove("gone", in: collection)])
        return (model, backend.highestSequence, backend.identity)
    }

    private static func expect(
        _ model: RecordModel, in collection: PluginCollection, _ context: CheckContext
    ) throws {
        let reader = try collection.backend.reader()
        let records = try reader.scan(collection)
        context.expect(records, is: model.scan(PluginRange()), "the records")
        context.expectNumbers(
            records.map(\.sequence), is: model.scan(PluginRange()).map(\.sequence), of: collection.backend,
            "the sequence numbers of records")
        for index in indexes(of: collection.backend).indices {
            for range in [PluginRange(.key(index: index)), PluginRange(.unkeyed(index: index))] {
                context.expect(try reader.scan(collection, range), is: model.scan(range), "the records \(range)")
            }
        }
    }

    /// Kills a program that writes, several times, and looks at what it has left.
    static func kill(_ context: CheckContext) throws {
        guard let program = context.crashWorkload else { throw NotApplicable(text: "there is no program to kill") }
        var progress = CrashWorkload.Progress()
        for round in 1...3 {
            progress = try program.run(
                options: context.options, format: context.format, collection: context.name("crash workload"),
                after: progress, count: 7 * round)
            guard let found = try CrashWorkload.verify(context.openAfterKill(), acknowledged: progress, context) else {
                return
            }
            progress = found
        }
    }
}
