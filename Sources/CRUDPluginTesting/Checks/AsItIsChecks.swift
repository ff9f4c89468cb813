import CRUDPluginABI

/// Collections that are opened with CRUDD_OPEN_AS_IT_IS, which changes nothing.
enum AsItIsChecks {
    private static let name = "as it is"

    /// Of a collection that is open, of one that has not been opened since the backend was, and of one that is missing.
    static func looks(_ context: CheckContext) throws {
        let identity = try looksAtOpenOne(context)
        let backend = try context.open()
        context.expectFailure(CRUDD_NOT_FOUND, of: "open_collection of a missing one with CRUDD_OPEN_AS_IT_IS") {
            () throws(CallError) in _ = try backend.openAsItIs(context.name("missing"), format: context.format)
        }
        context.expect(
            try !backend.collections().contains(context.name("missing")), "a collection that was looked for is listed")
        // Of a plugin that does not declare CRUDD_IS_DURABLE nothing may be left.
        guard backend.has(CRUDD_IS_DURABLE) else { return }
        let looked = try backend.openAsItIs(context.name(name), format: context.format)
        let reader = try backend.reader()
        context.expect(try reader.scan(looked).map(\.id), is: ["a", "b", "c"], "the records, opened as it is")
        context.expect(try reader.count(looked), is: 3, "records, opened as it is")
        context.expect(
            try backend.write([.remove("b", in: looked)]), is: [.removed], "a removal from what was opened as it is")
        try expectUnchanged(try open(backend, context), ids: ["a", "c"], identity, "opened after that", context)
    }

    private static func open(_ backend: PluginBackend, _ context: CheckContext) throws(CallError) -> PluginCollection {
        try context.collection(
            name, of: backend, indexes: backend.has(CRUDD_HAS_INDEXES) ? ["x", "y"] : [],
            hasSequences: backend.has(CRUDD_HAS_SEQUENCES))
    }

    /// - Returns: the identity of the history; 0 where there is none.
    private static func looksAtOpenOne(_ context: CheckContext) throws -> UInt64 {
        let backend = try context.open()
        let collection = try open(backend, context)
        let keys: [[UInt8]] = backend.has(CRUDD_HAS_INDEXES) ? [[1], [2]] : []
        let ids = ["a", "b", "c", "d"]
        let puts = ids.map { PluginMutation.put(PluginRecord($0, bytes: context.item(1)), keys: keys, in: collection) }
        context.expect(
            try backend.write(puts), is: ids.map { _ in .created }, "the first records")
        _ = try backend.write([.remove("d", in: collection)])
        let identity = try backend.has(CRUDD_HAS_SEQUENCES) ? backend.history(of: collection).identity : 0
        let looked = try backend.openAsItIs(context.name(name), format: context.format)
        context.expect(
            try backend.reader().scan(looked).map(\.id), is: ["a", "b", "c"], "the records of an open collection")
        try expectUnchanged(collection, ids: ["a", "b", "c"], identity, "once somebody has looked at it", context)
        return identity
    }

    private static func expectUnchanged(
        _ collection: PluginCollection, ids: [String], _ identity: UInt64, _ what: String, _ context: CheckContext
    ) throws {
        let backend = collection.backend
        let reader = try backend.reader()
        if backend.has(CRUDD_HAS_INDEXES) {
            for index in 0..<2 {
                context.expect(
                    try reader.scan(collection, PluginRange(.key(index: index))).map(\.id), is: ids,
                    "the records with a key in index \(index), \(what)")
            }
        }
        guard backend.has(CRUDD_HAS_SEQUENCES) else { return }
        context.expect(
            try backend.history(of: collection).identity, is: identity, "the identity of the history, \(what)")
        let removed = try reader.scan(collection, .sequences()).filter(\.isRemoved).map(\.id)
        context.expect(
            removed, is: ids.contains("b") ? ["d"] : ["d", "b"], "the removals that are remembered, \(what)")
    }
}
