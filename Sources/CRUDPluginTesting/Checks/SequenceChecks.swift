import CRUDPluginABI

/// Sequence numbers, which every plugin stores.
enum SequenceChecks {
    /// A record has the number of the last put that took effect.
    static func stored(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("sequence numbers", of: backend)
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
        _ = try backend.write([
            put("a", 0), put("b", 1), put("c", 2), put("a", 3), put("b", 4, .absent), put("c", 5, .revision("?")),
            unnumbered,
        ])
        let expected: [UInt64] = [first + 3, first + 1, first + 2, 0]
        context.expect(
            try reader.read(["a", "b", "c", "d"], in: collection).map { $0?.sequence ?? 0 }, is: expected,
            "the sequence numbers of records that are read")
        context.expect(
            try reader.scan(collection, withItems: false).map(\.sequence), is: expected,
            "the sequence numbers of records that are scanned")
    }
}
