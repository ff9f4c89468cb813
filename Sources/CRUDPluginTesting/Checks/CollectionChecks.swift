import CRUDPluginABI

/// Collections come, are listed, and go.
enum CollectionChecks {
    static func lifeCycle(_ trial: Trial) throws {
        let backend = try trial.open()
        let name = trial.name("collection")
        trial.expectFailure(CRUDD_NOT_FOUND, of: "open_collection of none without CRUDD_OPEN_CREATE") {
            () throws(CallFault) in _ = try backend.open(name, format: trial.format, creates: false)
        }
        trial.expectFailure(CRUDD_NOT_FOUND, of: "drop_collection of none") { () throws(CallFault) in
            try backend.drop(name)
        }
        let item = Sample.item(1, trial.format)
        let collection = try backend.open(name, format: trial.format)
        trial.expect(
            try backend.write([.put("id", bytes: item, in: collection)]), is: [.created], "the first record")
        trial.expect(try backend.collections().count { $0 == name }, is: 1, "how often the collection is listed")

        let again = try backend.open(name, format: trial.format, indexes: ["a", "b.c"], creates: false)
        let reader = try backend.reader()
        trial.expect(
            try reader.read("id", in: again), is: PluginRecord("id", bytes: item),
            "the record, once the collection is opened again with indexes")
        trial.expect(
            try reader.read("id", in: collection), is: PluginRecord("id", bytes: item),
            "the record through what was opened first")

        try backend.drop(name)
        reader.endSnapshot()
        trial.expect(try !backend.collections().contains(name), "a dropped collection is still listed")
        trial.expectFailure(CRUDD_NOT_FOUND, of: "open_collection of what was dropped") { () throws(CallFault) in
            _ = try backend.open(name, format: trial.format, creates: false)
        }
        let anew = try backend.open(name, format: trial.format)
        trial.expect(try reader.count(anew), is: 0, "records of a collection that was dropped and made anew")
        trial.expect(
            try backend.write([.put("id", bytes: item, if: .absent, in: anew)]), is: [.created],
            "a record in a collection that was dropped and made anew")
    }

    /// Names that a path, a table or a careless comparison could trip over: each is a collection of its own.
    private static let oddNames = [
        "crudd-check", "CRUDD-CHECK", "crudd-check.", ".crudd-check", "../crudd-check", "/crudd-check",
        "crudd-check/..", "crudd%2Fcheck", "crudd-check'; DROP TABLE x; --", "\"crudd-check\"", "crudd_check",
        "crudd*check?", "crudd-check \u{E9}", "crudd-check e\u{301}", "crudd-check \u{1F600}", "crudd-check ",
        "crudd-check" + String(repeating: "\u{20AC}", count: 39), "crudd-check" + String(repeating: "x", count: 117),
        "crudd-check" + String(repeating: "x", count: 116), "..", ".", "-", "~", " ", "sqlite_master",
    ]

    static func oddNames(_ trial: Trial) throws {
        let backend = try trial.open()
        let others = try backend.collections()
        // What is there already is not the suite's.
        let names = oddNames.filter { name in !others.contains { $0.utf8.elementsEqual(name.utf8) } }
        defer { for name in names { try? backend.drop(name) } }
        for (number, name) in names.enumerated() {
            let collection = try backend.open(name, format: trial.format)
            let item = Sample.item(number, trial.format)
            trial.expect(
                try backend.write([.put("id", bytes: item, if: .absent, in: collection)]), is: [.created],
                "the first record of \(name.debugDescription)")
        }
        let listed = try backend.collections()
        let reader = try backend.reader()
        for (number, name) in names.enumerated() {
            let count = listed.count { $0.utf8.elementsEqual(name.utf8) }
            trial.expect(count, is: 1, "how often \(name.debugDescription) is listed")
            let collection = try backend.open(name, format: trial.format, creates: false)
            trial.expect(
                try reader.scan(collection), is: [PluginRecord("id", bytes: Sample.item(number, trial.format))],
                "the records of \(name.debugDescription)")
        }
        for name in names { try backend.drop(name) }
        trial.expect(try backend.collections(), is: others, "the collections once all are dropped")
    }

    /// Records of another format are out of sight, and safe.
    static func formats(_ trial: Trial) throws {
        let backend = try trial.open()
        let name = trial.name("formats")
        let formats = [trial.format] + ConformanceSuite.formats.filter { $0 != trial.format }
        let reader = try backend.reader()
        for (number, format) in formats.enumerated() {
            let collection = try backend.open(name, format: format)
            reader.endSnapshot()
            trial.expect(try reader.count(collection), is: 0, "records of another format in one of \(format)")
            let item = Sample.item(number, format)
            trial.expect(
                try backend.write([.put("id", bytes: item, if: .absent, in: collection)]), is: [.created],
                "the first record of format \(format)")
        }
        reader.endSnapshot()
        for (number, format) in formats.enumerated() {
            let collection = try backend.open(name, format: format, creates: false)
            trial.expect(
                try reader.scan(collection), is: [PluginRecord("id", bytes: Sample.item(number, format))],
                "the records of format \(format)")
        }
        trial.expect(try backend.collections().count { $0 == name }, is: 1, "how often the collection is listed")
        try backend.drop(name)
        for format in formats {
            let collection = try backend.open(name, format: format)
            reader.endSnapshot()
            trial.expect(try reader.count(collection), is: 0, "records of format \(format) after the drop")
        }
    }

    /// A call that fails says why within the bounds of its place, also of the longest name.
    static func failures(_ trial: Trial) throws {
        let backend = try trial.open()
        for name in [trial.name(String(repeating: "\u{1F600}", count: 29)), trial.name("%s%n%d")] {
            trial.expectFailure(CRUDD_NOT_FOUND, of: "open_collection of none") { () throws(CallFault) in
                _ = try backend.open(name, format: trial.format, creates: false)
            }
            trial.expectFailure(CRUDD_NOT_FOUND, of: "drop_collection of none") { () throws(CallFault) in
                try backend.drop(name)
            }
        }
    }
}
