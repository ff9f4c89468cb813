import CRUDPluginABI

/// What does not depend on the format of items.
enum BackendChecks {
    /// Options may take capabilities away, and add none; so may storage.
    static func capabilities(_ context: CheckContext) throws {
        let capabilities = try context.open().capabilities
        if let told = context.plugin.capabilities(withOptions: context.options) {
            context.expect(capabilities & ~told, is: 0, "capabilities of the backend that its options do not leave")
        }
        context.expect(
            capabilities & ~context.plugin.capabilities, is: 0,
            "capabilities of the backend that the plugin does not declare")
        PluginChecks.checkDependencies(capabilities, context)
    }

    /// What is not declared is refused, and has no effect.
    static func undeclared(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("undeclared", of: backend)
        let item = context.item(1)
        let reader = try backend.reader()
        if !backend.has(CRUDD_HAS_TRANSACTIONS) {
            context.expectFailure(CRUDD_UNSUPPORTED, of: "an atomic batch without CRUDD_HAS_TRANSACTIONS") {
                () throws(CallError) in _ = try backend.write([.put("b", bytes: item, in: collection)], isAtomic: true)
            }
        }
        _ = try backend.write([.put("a", bytes: item, in: collection)])
        if !backend.has(CRUDD_HAS_INDEXES) {
            context.expect(
                try backend.write([.setKeys("a", [[1]], ifRevision: "1", in: collection)]), is: [.unsupported],
                "CRUDD_SET_KEYS without CRUDD_HAS_INDEXES")
            for range in [PluginRange(.key(index: 0)), PluginRange(.unkeyed(index: 0))] {
                context.expectFailure(CRUDD_UNSUPPORTED, of: "a scan \(range) without CRUDD_HAS_INDEXES") {
                    () throws(CallError) in _ = try reader.scan(collection, range)
                }
                context.expectFailure(CRUDD_UNSUPPORTED, of: "a count \(range) without CRUDD_HAS_INDEXES") {
                    () throws(CallError) in _ = try reader.count(collection, range)
                }
            }
        }
        if !backend.has(CRUDD_HAS_SEQUENCES) {
            context.expectFailure(CRUDD_UNSUPPORTED, of: "a scan by sequence without CRUDD_HAS_SEQUENCES") {
                () throws(CallError) in _ = try reader.scan(collection, .sequences())
            }
        }
        let table = context.plugin.table.pointee
        if !backend.has(CRUDD_HAS_SEQUENCES), table.trim_history != nil {
            context.expectFailure(CRUDD_UNSUPPORTED, of: "trim_history without CRUDD_HAS_SEQUENCES") {
                () throws(CallError) in _ = try backend.history(of: collection)
            }
        }
        if !backend.numbersItself, table.read_history != nil {
            context.expectFailure(
                CRUDD_UNSUPPORTED, of: "read_history without CRUDD_IS_SHARED and CRUDD_HAS_SEQUENCES"
            ) { () throws(CallError) in _ = try reader.readHistory(of: collection) }
        }
        if !backend.has(CRUDD_TAKES_HISTORY), table.take_history != nil {
            context.expectFailure(CRUDD_UNSUPPORTED, of: "take_history without CRUDD_TAKES_HISTORY") {
                () throws(CallError) in
                try backend.takeHistory(of: collection, identity: 1, forgotten: 0, lastSequence: 0)
            }
        }
        if !backend.has(CRUDD_HAS_EXPIRY), table.remove_expired != nil {
            context.expectFailure(CRUDD_UNSUPPORTED, of: "remove_expired without CRUDD_HAS_EXPIRY") {
                () throws(CallError) in _ = try backend.removeExpired(from: collection, limit: 1)
            }
        }
        reader.endSnapshot()
        context.expect(
            try reader.scan(collection), is: [PluginRecord("a", bytes: item)], "the records after what was refused")
    }

    /// The plugin works with the longer structs of a later host.
    static func growth(_ context: CheckContext) throws {
        let backend = try context.open(surplus: 48)
        let indexes = backend.has(CRUDD_HAS_INDEXES) ? ["x", "y"] : []
        let collection = try context.collection("growth", of: backend, indexes: indexes)
        let model = try RecordModel(ids: RecordModel.ids, collection, context) {
            indexes.isEmpty ? [] : [[UInt8($0 + 1)]]
        }
        let reader = try backend.reader()
        let id = model.records[0].id
        context.expect(
            try reader.read(["none", id], in: collection), is: [nil, model.records[0]], "records that are read")
        context.expect(try reader.scan(collection), is: model.scan(PluginRange()), "records that are scanned")
        context.expect(try reader.count(collection), is: model.records.count, "records that are counted")
        if !indexes.isEmpty {
            let range = PluginRange(.key(index: 0), lower: [3])
            context.expect(try reader.scan(collection, range), is: model.scan(range), "records that are scanned by key")
        }
        let outcomes = try backend.write([
            .put(id, bytes: context.item(1), revision: "2", in: collection),
            .put(id, bytes: context.item(1), if: .absent, in: collection), .remove("none", in: collection),
            .remove(id, if: .revision("1"), in: collection), .remove(id, in: collection),
        ])
        context.expect(
            outcomes, is: [.replaced, .exists, .notFound, .mismatch(current: "2"), .removed], "the outcomes of a batch")
        reader.endSnapshot()
        context.expect(try reader.count(collection), is: model.records.count - 1, "records after the batch")
        context.expect(try backend.collections().contains(context.name("growth")), "the collection is not listed")
        backend.idle()
    }

    /// A deadline that is far off changes nothing. After one that has passed nobody needs the result, but what is
    /// returned is right, and the backend still works.
    static func deadlines(_ context: CheckContext) throws {
        let backend = try context.open()
        backend.call.deadline = PluginCall.deadline(after: .seconds(600))
        let collection = try context.collection("deadlines", of: backend)
        let model = try RecordModel(ids: RecordModel.ids, collection, context)
        let reader = try backend.reader()
        context.expect(try reader.scan(collection), is: model.scan(PluginRange()), "a scan with a deadline")
        backend.call.deadline = 1
        do {
            context.expect(
                try reader.scan(collection), is: model.scan(PluginRange()), "a scan with a deadline that has passed")
        } catch {
            context.expect(
                error.status == CRUDD_INTERRUPTED || error.status == CRUDD_UNAVAILABLE,
                "a scan with a deadline that has passed: \(error)")
        }
        backend.call.deadline = 0
        context.expect(try reader.scan(collection), is: model.scan(PluginRange()), "a scan without a deadline")
        context.expect(
            try backend.write([.remove(model.records[0].id, in: collection)]), is: [.removed], "a write afterwards")
    }

    /// `data_version` stays the same while nobody else writes. If it reports others' writes at all, it reports each.
    static func dataVersion(_ context: CheckContext) throws {
        let backend = try context.open()
        let reader = try backend.reader()
        guard let first = reader.dataVersion() else { throw NotApplicable(text: "the plugin has no data_version") }
        let collection = try context.collection("data version", of: backend)
        for number in 1...3 {
            _ = try backend.write([.put("a", bytes: context.item(number), in: collection)])
            reader.endSnapshot()
            context.expect(try reader.count(collection), is: 1, "records")
            context.expect(reader.dataVersion(), is: first, "data_version after a write of this backend")
        }
        // A plugin may refuse to open storage twice, or open storage of its own.
        guard first != 0, let other = try? context.open(),
            let shared = try? other.open(context.name("data version"), format: context.format, creates: false)
        else { return }
        for number in 1...3 {
            let before = reader.dataVersion()
            _ = try other.write([.put("a", bytes: context.item(number), in: shared)])
            reader.endSnapshot()
            context.expect(reader.dataVersion() != before, "data_version is the same after somebody else has written")
        }
    }
}
