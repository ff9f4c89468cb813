import CRUDPluginABI

/// What is there when the storage is opened again.
enum DurabilityChecks {
    /// Records, revisions and collections outlast their backend. Of a plugin that does not declare CRUDD_IS_DURABLE
    /// whatever is left must be whole.
    static func reopening(_ trial: Trial) throws {
        let records = (0..<50).map {
            PluginRecord("id \($0)/%", bytes: Sample.item($0, trial.format, padding: $0 * 100), revision: "r\($0)")
        }.sorted { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }
        do {
            let backend = try trial.open()
            let collection = try trial.collection("reopening", of: backend)
            _ = try trial.collection("reopening, empty", of: backend)
            _ = try backend.write(
                records.map { .put($0.id, bytes: $0.bytes, revision: $0.revision, in: collection) })
            _ = try backend.write([.put("gone", bytes: records[0].bytes, in: collection)])
            _ = try backend.write([.remove("gone", in: collection)])
        }
        let backend = try trial.open()
        let isDurable = backend.capabilities & UInt64(CRUDD_IS_DURABLE) != 0
        let found = try backend.collections()
        guard isDurable || found.contains(trial.name("reopening")) else { return }
        trial.expect(found.contains(trial.name("reopening")), "a collection is not listed any more")
        let collection = try backend.open(trial.name("reopening"), format: trial.format, creates: false)
        trial.expect(try backend.reader().scan(collection), is: records, "the records")
        trial.expect(
            try backend.write([.put(records[0].id, bytes: records[1].bytes, if: .revision("?"), in: collection)]),
            is: [.mismatch(current: records[0].revision)], "a put on a wrong revision")
    }

    /// Kills a program that writes, several times, and looks at what it has left.
    static func kill(_ trial: Trial) throws {
        guard let storm = trial.storm else { throw NotApplicable(text: "there is no program to kill") }
        var answered = 0
        for round in 1...3 {
            answered = try storm.run(
                options: trial.options, format: trial.format, collection: trial.name("storm"), after: answered,
                count: 7 * round)
            guard let last = try Storm.last(in: trial.openAfterKill(), answered: answered, trial) else { return }
            answered = max(answered, last)
        }
    }
}
