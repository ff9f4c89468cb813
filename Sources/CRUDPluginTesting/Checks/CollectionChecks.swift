import CRUDPluginABI

/// Creating, opening, listing and dropping collections.
enum CollectionChecks {
    static func lifeCycle(_ context: CheckContext) throws {
        let backend = try context.open()
        let name = context.name("collection")
        context.expectFailure(CRUDD_NOT_FOUND, of: "open_collection of a missing one without CRUDD_OPEN_CREATE") {
            () throws(CallError) in _ = try backend.open(name, format: context.format, creates: false)
        }
        context.expectFailure(CRUDD_NOT_FOUND, of: "drop_collection of a missing one") { () throws(CallError) in
            try backend.drop(name)
        }
        let item = context.item(1)
        let collection = try backend.open(name, format: context.format)
        context.expect(
            try backend.write([.put("id", bytes: item, in: collection)]), is: [.created], "the first record")
        context.expect(try backend.collections().count { $0 == name }, is: 1, "how often the collection is listed")

        let again = try backend.open(name, format: context.format, creates: false)
        let reader = try backend.reader()
        context.expect(
            try reader.read("id", in: again), is: PluginRecord("id", bytes: item),
            "the record, once the collection is opened again")
        context.expect(
            try reader.read("id", in: collection), is: PluginRecord("id", bytes: item),
            "the record through what was opened first")

        try backend.drop(name)
        reader.endSnapshot()
        context.expect(try !backend.collections().contains(name), "a dropped collection is still listed")
        context.expectFailure(CRUDD_NOT_FOUND, of: "open_collection of a dropped one") { () throws(CallError) in
            _ = try backend.open(name, format: context.format, creates: false)
        }
        let new = try backend.open(name, format: context.format)
        context.expect(try reader.count(new), is: 0, "records of a collection that was dropped and created again")
        context.expect(
            try backend.write([.put("id", bytes: item, if: .absent, in: new)]), is: [.created],
            "a record in a collection that was dropped and created again")
    }

    /// Names that are special to a file system, to SQL or to a lenient comparison: each is a collection of its own.
    private static let oddNames = [
        "crudd-check", "CRUDD-CHECK", "crudd-check.", ".crudd-check", "../crudd-check", "/crudd-check",
        "crudd-check/..", "crudd%2Fcheck", "crudd-check'; DROP TABLE x; --", "\"crudd-check\"", "crudd_check",
        "crudd*check?", "crudd-check \u{E9}", "crudd-check e\u{301}", "crudd-check \u{1F600}", "crudd-check ",
        "crudd-check" + String(repeating: "\u{20AC}", count: 39), "crudd-check" + String(repeating: "x", count: 117),
        "crudd-check" + String(repeating: "x", count: 116), "..", ".", "-", "~", " ", "sqlite_master",
    ]

    static func oddNames(_ context: CheckContext) throws {
        let backend = try context.open()
        let others = try backend.collections()
        // What is there already does not belong to the suite.
        let names = oddNames.filter { name in !others.contains { $0.utf8.elementsEqual(name.utf8) } }
        defer { for name in names { try? backend.drop(name) } }
        for (number, name) in names.enumerated() {
            let collection = try backend.open(name, format: context.format)
            let item = context.item(number)
            context.expect(
                try backend.write([.put("id", bytes: item, if: .absent, in: collection)]), is: [.created],
                "the first record of \(name.debugDescription)")
        }
        let listed = try backend.collections()
        let reader = try backend.reader()
        for (number, name) in names.enumerated() {
            let count = listed.count { $0.utf8.elementsEqual(name.utf8) }
            context.expect(count, is: 1, "how often \(name.debugDescription) is listed")
            let collection = try backend.open(name, format: context.format, creates: false)
            context.expect(
                try reader.scan(collection), is: [PluginRecord("id", bytes: context.item(number))],
                "the records of \(name.debugDescription)")
        }
        for name in names { try backend.drop(name) }
        context.expect(try backend.collections(), is: others, "the collections once all are dropped")
    }

    /// A collection of another format has records of its own, or is refused where others write too.
    static func formats(_ context: CheckContext) throws {
        let backend = try context.open()
        let name = context.name("formats")
        var formats = [context.format] + Sample.formats.filter { $0 != context.format }
        if backend.has(CRUDD_IS_SHARED) {
            _ = try backend.open(name, format: context.format)
            formats.removeAll { format in
                do throws(CallError) {
                    _ = try backend.open(name, format: format)
                    return false
                } catch {
                    return error.status == CRUDD_UNSUPPORTED
                }
            }
        }
        let reader = try backend.reader()
        for (number, format) in formats.enumerated() {
            let collection = try backend.open(name, format: format)
            reader.endSnapshot()
            context.expect(try reader.count(collection), is: 0, "records of another format in one of \(format)")
            let item = Sample.item(number, format)
            context.expect(
                try backend.write([.put("id", bytes: item, if: .absent, in: collection)]), is: [.created],
                "the first record of format \(format)")
        }
        reader.endSnapshot()
        for (number, format) in formats.enumerated() {
            let collection = try backend.open(name, format: format, creates: false)
            context.expect(
                try reader.scan(collection), is: [PluginRecord("id", bytes: Sample.item(number, format))],
                "the records of format \(format)")
        }
        context.expect(try backend.collections().count { $0 == name }, is: 1, "how often the collection is listed")
        try backend.drop(name)
        for format in formats {
            let collection = try backend.open(name, format: format)
            reader.endSnapshot()
            context.expect(try reader.count(collection), is: 0, "records of format \(format) after the drop")
        }
    }

    /// A call that fails says why within the bounds of crudd_failure, also with the longest name.
    static func failures(_ context: CheckContext) throws {
        let backend = try context.open()
        for name in [context.name(String(repeating: "\u{1F600}", count: 29)), context.name("%s%n%d")] {
            context.expectFailure(CRUDD_NOT_FOUND, of: "open_collection of a missing one") { () throws(CallError) in
                _ = try backend.open(name, format: context.format, creates: false)
            }
            context.expectFailure(CRUDD_NOT_FOUND, of: "drop_collection of a missing one") { () throws(CallError) in
                try backend.drop(name)
            }
        }
    }
}
