/// Ids, items and revisions that are special to a file system, to an encoding or to a lenient comparison.
enum TextChecks {
    private static let oddIDs = [
        "../../etc/passwd", ".", "..", "/", "a/b", "%2F", "%", "%s%n", "~", " ", "  ", "item_1.json", "Case", "case",
        "CASE", "\u{E9}", "e\u{301}", "\u{212B}", "\u{C5}", "A\u{30A}", "con", "-rf", "'; DROP TABLE x; --", "\"", "\\",
        "\u{FEFF}", "\u{FEFF}\u{FEFF}", "\u{FFFD}", "\u{FFFE}", "\u{85}", "\u{2028}", "\u{200B}", "\u{10FFFF}",
        "0", "00", "1e3", "null", "*", "_", "__", String(repeating: "x", count: 200),
        String(repeating: "x", count: 201),
        String(repeating: "x", count: 511), String(repeating: "x", count: 512), String(repeating: "X", count: 512),
        String(repeating: "\u{1F600}", count: 128), String(repeating: ".", count: 67),
        String(repeating: "/", count: 512),
    ]

    /// Each odd id names a record of its own.
    static func ids(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("ids", of: backend)
        let records = oddIDs.enumerated().map {
            PluginRecord($1, bytes: context.item($0), revision: "r\($0)")
        }
        let outcomes = try backend.write(
            records.map { .put($0.id, bytes: $0.bytes, revision: $0.revision, if: .absent, in: collection) })
        for (id, outcome) in zip(oddIDs, outcomes) {
            context.expect(outcome, is: .created, "a put of id \(id.debugDescription)")
        }
        let reader = try backend.reader()
        for (record, read) in zip(records, try reader.read(oddIDs, in: collection)) {
            context.expect(read, is: record, "the record of id \(record.id.debugDescription)")
        }
        let inOrder = records.sorted { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }
        let scanned = try reader.scan(collection)
        context.expect(scanned, is: inOrder, "the records of a scan")
        context.expect(try reader.count(collection), is: oddIDs.count, "records")
        for id in oddIDs {
            context.expect(
                try reader.scan(collection, after: id, limit: 1).first?.id,
                is: inOrder.first { id.utf8.lexicographicallyPrecedes($0.id.utf8) }?.id,
                "the id after \(id.debugDescription)")
        }
        for (id, outcome) in zip(oddIDs, try backend.write(oddIDs.map { .remove($0, in: collection) })) {
            context.expect(outcome, is: .removed, "a removal of id \(id.debugDescription)")
        }
        reader.endSnapshot()
        context.expect(try reader.count(collection), is: 0, "records after all were removed")
    }

    /// What is stored comes back byte by byte.
    static func items(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("items", of: backend)
        let items = Sample.oddItems(context.format)
        let records = items.enumerated().map { PluginRecord("\($0)", bytes: $1) }
        _ = try backend.write(records.map { .put($0.id, bytes: $0.bytes, in: collection) })
        let reader = try backend.reader()
        for (record, read) in zip(records, try reader.read(records.map(\.id), in: collection)) {
            context.expectBytes(read?.bytes, is: record.bytes, "an item")
        }
    }

    static func revisions(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("revisions", of: backend)
        let item = context.item(1)
        let reader = try backend.reader()
        var previous: String?
        for revision in ["1", "01", "1.0", "A", "a", "'\"", "%s", "--", String(repeating: "f", count: 64)] {
            let precondition = previous.map { PluginMutation.Precondition.revision($0) } ?? .absent
            let outcomes = try backend.write([
                .put("id", bytes: item, revision: revision, if: .revision(revision + "?"), in: collection),
                .put("id", bytes: item, revision: revision, if: precondition, in: collection),
            ])
            context.expect(
                outcomes,
                is: previous.map { [.mismatch(current: $0), .replaced] } ?? [.notFound, .created],
                "a put that gives the revision \(revision) to a record of \(previous ?? "none")")
            reader.endSnapshot()
            context.expect(
                try reader.read("id", in: collection)?.revision, is: revision, "the revision that was stored")
            previous = revision
        }
    }

    /// Items as large as a daemon accepts by default.
    static func largeItems(_ context: CheckContext) throws {
        let bytes = 4 << 20
        let backend = try context.open()
        let collection = try context.collection("large items", of: backend)
        let large = context.item(1, padding: bytes)
        let larger = context.item(2, padding: bytes + 4097)
        let reader = try backend.reader()
        for (item, outcome) in [(large, PluginOutcome.created), (larger, .replaced)] {
            let outcomes = try backend.write([
                .put("a", bytes: item, in: collection), .put("b", bytes: context.item(3), in: collection),
            ])
            context.expect(outcomes, is: [outcome, outcome], "puts of \(bytes) bytes and of few")
            reader.endSnapshot()
            context.expectBytes(try reader.scan(collection, limit: 1).first?.bytes, is: item, "a large item")
        }
        _ = try backend.write([.put("a", bytes: context.item(3), in: collection)])
        reader.endSnapshot()
        context.expectBytes(
            try reader.read("a", in: collection)?.bytes, is: context.item(3),
            "a small item in the place of a larger one")
    }
}
