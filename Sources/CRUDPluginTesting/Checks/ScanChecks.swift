import CRUDPluginABI

/// Scanning and counting in every order, compared with an array of the same records.
enum ScanChecks {
    static func byID(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("scanning", of: backend)
        let model = try RecordModel(ids: RecordModel.ids, collection, context)
        let reader = try backend.reader()
        for range in idRanges { try compare(range, of: model, in: collection, reader, context) }
        for after in ["A", "B", "a", "a!", "aa", "ab", "z", "\u{1F600}"] {
            for (range, isReversed) in [
                (PluginRange(), false), (.prefix("ab"), false), (PluginRange(), true), (.prefix("ab"), true),
            ] {
                context.expect(
                    try reader.scan(collection, range, isReversed: isReversed, after: after),
                    is: model.scan(range, isReversed: isReversed, after: after),
                    "a scan \(range)\(isReversed ? ", reversed," : "") after \(after.debugDescription)")
            }
        }
        let ids = model.scan(PluginRange()).map(\.id)
        for stop in 1...3 {
            context.expect(
                try reader.scan(collection, stopAfter: stop).map(\.id), is: Array(ids.prefix(stop)),
                "a scan that is stopped after \(stop)")
        }
    }

    private static let idRanges: [PluginRange] =
        ["a", "ab", "abcd", "b", "\u{E9}", "\u{1F600}", "\u{10FFFF}"].map { .prefix($0) } + [
            PluginRange(), PluginRange(lower: [0x61]), PluginRange(upper: Array("ab".utf8)),
            PluginRange(lower: Array("a!".utf8), upper: Array("ab\u{E9}".utf8)),
            PluginRange(lower: Array("b".utf8), upper: Array("a".utf8)),
            PluginRange(lower: Array("a".utf8), upper: Array("a".utf8)),
        ]

    /// Whatever the order is, a scan in pages finds each record once that is there all the time.
    static func inAnyOrder(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("any order", of: backend)
        var model = try RecordModel(ids: RecordModel.ids, collection, context)
        let reader = try backend.reader()
        for limit in [0, 1, 3, 100] {
            var found: [PluginRecord] = []
            var last: (id: String, position: UInt64)?
            repeat {
                let page = try reader.scanInAnyOrder(collection, after: last, limit: limit)
                found += page.records
                last = limit == 0 ? nil : page.records.last.map { ($0.id, page.position) }
                // A record that is put again stays where it is.
                _ = try backend.write([.put(model.records[found.count % model.records.count], in: collection)])
                reader.endSnapshot()
            } while last != nil && found.count <= model.records.count
            context.expect(
                found.sorted { Array($0.id.utf8).lexicographicallyPrecedes(Array($1.id.utf8)) },
                is: model.scan(PluginRange()), "a scan in any order with the limit \(limit), its records sorted")
        }
        // The record at which a scan resumes need not be there any more.
        let first = try reader.scanInAnyOrder(collection, after: nil, limit: 3)
        guard let last = first.records.last else { return }
        _ = try backend.write([.remove(last.id, in: collection)])
        model.remove(last.id)
        reader.endSnapshot()
        let rest = try reader.scanInAnyOrder(collection, after: (last.id, first.position), limit: 0).records
        context.expect(
            (first.records.dropLast() + rest).map(\.id).sorted(), is: model.records.map(\.id).sorted(),
            "a scan in any order that resumes at a record that has been removed")
    }

    static func count(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("counting", of: backend)
        let model = try RecordModel(ids: RecordModel.ids, collection, context)
        let reader = try backend.reader()
        for range in idRanges {
            context.expect(try reader.count(collection, range), is: model.scan(range).count, "records \(range)")
        }
        for limit in [1, 5, 100] {
            let count = try reader.count(collection, limit: limit)
            context.expect(
                count >= min(limit, model.records.count) && count <= model.records.count,
                "of \(model.records.count) records, \(count) are counted with the limit \(limit)")
        }
    }

    // MARK: Keys

    private static let longest = [UInt8](repeating: 0xFF, count: 512)
    /// Keys that sort unlike texts, numbers or signed bytes; one shared by several records, and none.
    private static let keys: [[UInt8]] = [
        [1], [], [0], [0, 0], [0xFF], [0x7F], [0x80], [1, 0], [1], [], [1], longest, [5, 0x61], [5],
    ]
    private static let keyRanges: [(lower: [UInt8], upper: [UInt8])] = [
        ([], []), ([1], []), ([], [1]), ([1], [1, 0]), ([1], [2]), ([0], [0, 0]), ([0x80], longest), ([0xFF], []),
        (longest, []), ([2], [1]), ([6], [7]),
    ]

    static func byKey(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("keys", of: backend, indexes: ["first", "second.part"])
        let model = try RecordModel(ids: RecordModel.ids, collection, context) {
            [keys[$0], $0.isMultiple(of: 5) ? [] : keys[keys.count - 1 - $0]]
        }
        let reader = try backend.reader()
        for index in 0...1 {
            for (lower, upper) in keyRanges {
                try compare(
                    PluginRange(.key(index: index), lower: lower, upper: upper), of: model, in: collection, reader,
                    context)
            }
            for range in [[], Array("a!".utf8)] {
                try compare(
                    PluginRange(.unkeyed(index: index), lower: range), of: model, in: collection, reader, context)
                try compare(
                    PluginRange(.unkeyed(index: index), upper: range), of: model, in: collection, reader, context)
            }
        }
        // Behind positions at which there is no record.
        for (key, id) in [([1], "aa"), ([1, 0, 0], "a"), ([4], "a"), (longest, "\u{10FFFF}"), ([0], " ")] {
            for isReversed in [false, true] {
                let range = PluginRange(.key(index: 0))
                context.expect(
                    try reader.scan(collection, range, isReversed: isReversed, afterKey: key, after: id),
                    is: model.scan(range, isReversed: isReversed, afterKey: key, after: id),
                    "a scan by key\(isReversed ? ", reversed," : "") after \(Excerpt(key)) and \(id.debugDescription)")
            }
        }
    }

    // MARK: Sequence numbers

    static func bySequence(_ context: CheckContext) throws {
        let backend = try context.open()
        if backend.numbersItself { throw NotApplicable.numbersItself }
        var collection = try context.collection("sequences", of: backend)
        let reader = try backend.reader()
        var model = RecordModel()
        let first = backend.highestSequence + 1
        func put(_ id: String, _ sequence: UInt64) throws {
            let record = PluginRecord(id, bytes: context.item(1), sequence: sequence)
            model.put(record)
            var mutation = PluginMutation.put(record, in: collection)
            mutation.sequence = sequence
            _ = try backend.write([mutation])
        }
        for (number, id) in ["d", "b", "e", "a", "c"].enumerated() { try put(id, first + UInt64(number)) }
        try put("unnumbered", 0)
        // Records that were written before the scans were asked for are found as well.
        collection = try context.collection("sequences", of: backend, hasSequences: true)
        for (id, sequence) in [("b", first + 5), ("f", first + 16), ("a", first + 17)] { try put(id, sequence) }
        try put("a number is missing", 0)
        for id in ["e", "f"] {
            _ = try backend.write([.remove(id, in: collection)])
            model.remove(id, sequence: backend.highestSequence)
        }
        reader.endSnapshot()
        let bounds: [(UInt64, UInt64)] = [
            (0, 0), (first, 0), (first + 1, 0), (first + 5, first + 17), (first + 6, first + 16), (0, first + 17),
            (first + 100, 0), (0, first), (first + 18, first + 19), (first + 19, 0),
        ]
        for (lower, upper) in bounds {
            try compare(.sequences(from: lower, to: upper), of: model, in: collection, reader, context)
        }
        for (lower, upper) in [("", ""), ("b", ""), ("", "b")] {
            let range = PluginRange(.unsequenced, lower: Array(lower.utf8), upper: Array(upper.utf8))
            try compare(range, of: model, in: collection, reader, context)
        }
    }

    // MARK: Comparing

    /// Compares scans of a range with the model: in both directions, at once and in pages, and the count.
    static func compare(
        _ range: PluginRange, of model: RecordModel, in collection: PluginCollection, _ reader: PluginReader,
        _ context: CheckContext
    ) throws {
        for isReversed in [false, true] {
            let expected = model.scan(range, isReversed: isReversed)
            let what = "a scan \(range)\(isReversed ? ", reversed" : "")"
            context.expect(try reader.scan(collection, range, isReversed: isReversed), is: expected, what)
            for limit in [1, 3, 100] {
                var rest = expected[...]
                var page = Page(range: range)
                repeat {
                    let wanted = rest.prefix(limit).map { limit == 3 ? $0.withoutItem : $0 }
                    let records = try reader.scan(
                        collection, page.range, isReversed: isReversed, afterKey: page.afterKey, after: page.after,
                        limit: limit, withItems: limit != 3)
                    context.expect(
                        records, is: wanted, "\(what), after \(page.after.debugDescription) with the limit \(limit)")
                    guard records == wanted, let last = rest.prefix(limit).last else { break }
                    rest = rest.dropFirst(limit)
                    page.resume(behind: last, model, isReversed: isReversed)
                } while !rest.isEmpty
            }
        }
        if range.order != .sequence {
            context.expect(try reader.count(collection, range), is: model.scan(range).count, "records \(range)")
        }
    }

    /// Where a scan resumes.
    private struct Page {
        var range: PluginRange
        var afterKey: [UInt8] = []
        var after = ""

        mutating func resume(behind record: PluginRecord, _ model: RecordModel, isReversed: Bool) {
            switch range.order {
            case .id, .unkeyed, .unsequenced: after = record.id
            case .key(let index):
                after = record.id
                afterKey = model.key(of: record.id, index: index)
            case .sequence where isReversed: range.upperSequence = record.sequence
            case .sequence: range.lowerSequence = record.sequence + 1
            }
        }
    }
}
