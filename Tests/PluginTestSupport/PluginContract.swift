import CRUDPluginABI
import Testing

/// What every plugin promises; each adapter's tests run it on a backend of their own.
package enum PluginContract {
    /// Each precondition, on a record that is there and on one that is not.
    package static func checkPreconditions(of backend: PluginBackend) throws {
        let collection = try backend.open("preconditions")
        func put(_ id: String, _ precondition: PluginMutation.Precondition) throws -> PluginOutcome {
            try backend.write([.put(id, "2", revision: "2", if: precondition, in: collection)])[0]
        }
        func remove(_ id: String, _ precondition: PluginMutation.Precondition) throws -> PluginOutcome {
            try backend.write([.remove(id, if: precondition, in: collection)])[0]
        }
        func restore() throws {
            _ = try backend.write([.put("there", "1", revision: "1", in: collection)])
            _ = try backend.write([.remove("gone", in: collection)])
        }
        let there: [(PluginMutation.Precondition, put: PluginOutcome, remove: PluginOutcome)] = [
            (.none, .replaced, .removed), (.absent, .exists, .exists), (.present, .replaced, .removed),
            (.revision("1"), .replaced, .removed),
            (.revision("0"), .mismatch(current: "1"), .mismatch(current: "1")),
        ]
        let gone: [(PluginMutation.Precondition, put: PluginOutcome, remove: PluginOutcome)] = [
            (.none, .created, .notFound), (.absent, .created, .notFound), (.present, .notFound, .notFound),
            (.revision("1"), .notFound, .notFound),
        ]
        for (id, cases) in [("there", there), ("gone", gone)] {
            for (precondition, putOutcome, removeOutcome) in cases {
                try restore()
                #expect(try put(id, precondition) == putOutcome, "put \(id) if \(precondition)")
                try restore()
                #expect(try remove(id, precondition) == removeOutcome, "remove \(id) if \(precondition)")
            }
        }
    }

    /// Mutations of one batch see those before them, and a failed one leaves the others alone.
    package static func checkBatches(of backend: PluginBackend) throws {
        let collection = try backend.open("batches")
        let outcomes = try backend.write([
            .put("a", "1", revision: "1", if: .absent, in: collection),
            .put("a", "2", revision: "2", if: .revision("1"), in: collection),
            .put("a", "3", revision: "3", if: .absent, in: collection),
            .put("b", "1", revision: "1", in: collection),
            .remove("b", if: .present, in: collection),
            .remove("b", in: collection),
            .put("c", "1", revision: "9", in: collection),
        ])
        #expect(outcomes == [.created, .replaced, .exists, .created, .removed, .notFound, .created])
        let records = try backend.reader().scan(collection)
        #expect(records == [PluginRecord("a", "2", revision: "2"), PluginRecord("c", "1", revision: "9")])
        #expect(try backend.write([]) == [])
    }

    /// Checks in an atomic batch change nothing, and one that fails undoes all; alone they are refused.
    package static func checkChecks(of backend: PluginBackend) throws {
        let collection = try backend.open("checks")
        _ = try backend.write([.put("there", "1", revision: "1", in: collection)])
        func outcome(_ id: String, _ precondition: PluginMutation.Precondition) throws -> PluginOutcome {
            try backend.write(
                [.put("other", "1", in: collection), .check(id, if: precondition, in: collection)], isAtomic: true)[1]
        }
        let refusals: [(String, PluginMutation.Precondition, PluginOutcome)] = [
            ("there", .absent, .exists), ("there", .revision("0"), .mismatch(current: "1")),
            ("gone", .present, .notFound), ("gone", .revision("1"), .notFound),
        ]
        for (id, precondition, expected) in refusals {
            #expect(try outcome(id, precondition) == expected, "\(id) if \(precondition)")
            #expect(try backend.reader().read("other", in: collection) == nil, "\(id) if \(precondition)")
        }
        let permitted: [(String, PluginMutation.Precondition)] = [
            ("there", .present), ("there", .revision("1")), ("gone", .absent), ("other", .present),
        ]
        for (id, precondition) in permitted {
            #expect(try outcome(id, precondition) == .applied(replaced: false), "\(id) if \(precondition)")
            _ = try backend.write([.remove("other", in: collection)])
        }
        #expect(try backend.reader().scan(collection) == [PluginRecord("there", "1", revision: "1")])
        #expect(
            try backend.write([.check("there", if: .present, in: collection)]) == [.refused(CRUDD_UNSUPPORTED)])
    }

    /// Walks, counts and reads in every combination of their parameters.
    package static func checkReading(of backend: PluginBackend) throws {
        let collection = try backend.open("reading")
        // By byte, `Z` stands before `a`, and "é" behind both.
        let ids = ["B", "Z", "a", "a!", "a.b", "ab", "abc", "b", "z", "é", "\u{1F600}"]
        _ = try backend.write(ids.shuffled().map { .put($0, "\"\($0)\"", in: collection) })
        let reader = try backend.reader()
        func scanned(after: String = "", prefix: String = "", limit: Int = 0) throws -> [String] {
            try reader.scan(collection, after: after, prefix: prefix, limit: limit).map(\.id)
        }
        #expect(try scanned() == ids)
        #expect(try scanned(limit: 3) == ["B", "Z", "a"])
        #expect(try scanned(after: "a.b") == ["ab", "abc", "b", "z", "é", "\u{1F600}"])
        #expect(try scanned(after: "aa", limit: 1) == ["ab"])
        #expect(try scanned(prefix: "a") == ["a", "a!", "a.b", "ab", "abc"])
        #expect(try scanned(after: "a!", prefix: "a", limit: 2) == ["a.b", "ab"])
        #expect(try scanned(after: "B", prefix: "a", limit: 1) == ["a"])
        #expect(try scanned(after: "b", prefix: "a") == [])
        #expect(try scanned(after: "\u{1F600}") == [])
        #expect(try reader.scan(collection, stopAfter: 2).map(\.id) == ["B", "Z"])
        #expect(try reader.scan(collection, limit: 1, withItems: false) == [PluginRecord("B", "")])
        #expect(try reader.count(collection) == ids.count)
        #expect(try reader.count(collection, prefix: "a") == 5)
        #expect(try reader.count(collection, prefix: "x") == 0)
        let asked = ["ab", "none", "ab", "é"]
        #expect(
            try reader.read(asked, in: collection) == [
                PluginRecord("ab", "\"ab\""), nil, PluginRecord("ab", "\"ab\""), PluginRecord("é", "\"é\""),
            ])
        #expect(try reader.read(["b"], in: collection, withItems: false) == [PluginRecord("b", "")])
        #expect(try reader.read([], in: collection) == [])
    }

    /// Collections come, are listed, go, and are empty when they come back.
    package static func checkCollections(of backend: PluginBackend) throws {
        #expect(throws: PluginFault.self) { try backend.open("none", creates: false) }
        #expect(throws: PluginFault.self) { try backend.drop("none") }
        let names = [
            "A", "Clients Database", "a", "sqlite_master", "ß/..", "..", String(repeating: "\u{20AC}", count: 42),
        ]
        for name in names {
            let collection = try backend.open(name)
            #expect(try backend.write([.put("id", "1", in: collection)]) == [.created])
        }
        #expect(try Set(names).isSubset(of: backend.collections()))
        try backend.drop("A")
        #expect(try !backend.collections().contains("A"))
        let reader = try backend.reader()
        #expect(try reader.read("id", in: backend.open("a", creates: false)) == PluginRecord("id", "1"))
        #expect(try reader.count(backend.open("A")) == 0)
        let plist = try backend.open("a", format: "plist")
        #expect(try reader.count(plist) == 0, "records of another format are out of sight")
        for name in names { try backend.drop(name) }
    }

    /// Ids that a file name, a path or a careless comparison could trip over.
    package static let oddIDs = [
        "../../etc/passwd", ".", "..", "/", "a/b", "%2F", "%", "~", " ", "item_1.json", "Case", "case", "CASE", "é",
        "e\u{301}", "con", "-rf", "'; DROP TABLE x; --", "\u{FEFF}", String(repeating: "x", count: 200),
        String(repeating: "x", count: 201), String(repeating: "x", count: 512),
        String(repeating: "\u{1F600}", count: 128), String(repeating: ".", count: 67),
    ]

    /// Each odd id names a record of its own.
    package static func checkOddIDs(of backend: PluginBackend) throws {
        let collection = try backend.open("odd")
        let outcomes = try backend.write(
            oddIDs.enumerated().map { .put($1, "\($0)", revision: "r\($0)", if: .absent, in: collection) })
        #expect(outcomes == oddIDs.map { _ in .created })
        let reader = try backend.reader()
        let records = oddIDs.enumerated().map { PluginRecord($1, "\($0)", revision: "r\($0)") }
        #expect(try reader.read(oddIDs, in: collection) == records)
        let inOrder = records.sorted { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }
        #expect(try reader.scan(collection) == inOrder)
        #expect(try reader.count(collection) == oddIDs.count)
    }
}
