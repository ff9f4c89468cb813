import CRUDPluginKit

/// The collections of a suite and their records, in memory.
struct SuiteContent {
    private struct Collection {
        /// In the order in which the collection was opened with them; the first has the plain keys. Empty for records
        /// that were written by hand: then whatever format is asked for has them.
        var formats: [SuiteKey.Format] = []
        /// By the format that their keys name; nil: the plain ones.
        var tables: [SuiteKey.Format?: RecordTable] = [:]
    }

    /// By name, as bytes: the host tells texts apart that Swift takes for equal.
    private var collections: [[UInt8]: Collection] = [:]

    /// No record that was ever in the suite has a higher sequence number.
    private(set) var sequenceCeiling: UInt64 = 0

    init() {}

    /// - Parameter list: the suite's keys and values, those of others among them.
    init(_ list: [String: Any], _ call: CallContext) throws(StorageFailure) {
        sequenceCeiling = (list[SuiteKey.sequenceCeiling] as? String).flatMap { UInt64($0) } ?? 0
        var records: [[UInt8]: [SuiteKey.Format?: [RecordTable.Record]]] = [:]
        for (position, (text, value)) in list.enumerated() {
            if position.isMultiple(of: 256), call.isInterrupted { throw .interrupted }
            guard let key = SuiteKey(text) else { continue }
            switch key.subject {
            case .formats:
                let names = (value as? String)?.split(separator: " ").map(String.init) ?? []
                collections[key.collection, default: Collection()].formats = names.compactMap(SuiteKey.Format.init)
            case .item(let id, let format):
                let item = StoredItem.bytes(value)
                let value = list[SuiteKey(key.collection, .metadata(id: id, format)).text]
                let metadata = StoredMetadata(value, of: item)
                sequenceCeiling = max(sequenceCeiling, metadata.sequence)
                records[key.collection, default: [:]][format, default: []].append(
                    RecordTable.Record(
                        id: id, item: item, revision: metadata.revision, expiresAt: metadata.expiresAt,
                        sequence: metadata.sequence))
            case .metadata: break
            }
        }
        for (name, tables) in records {
            collections[name, default: Collection()].tables = tables.mapValues { RecordTable($0) }
        }
    }

    // MARK: Collections

    var names: some Sequence<[UInt8]> { collections.keys }

    func contains(_ name: [UInt8], _ format: SuiteKey.Format) -> Bool {
        collections[name].map { $0.formats.isEmpty || $0.formats.contains(format) } ?? false
    }

    /// Adds a format to a collection and returns all of them in order.
    mutating func add(_ format: SuiteKey.Format, to name: [UInt8]) -> [SuiteKey.Format] {
        collections[name, default: Collection()].formats.append(format)
        return collections[name]?.formats ?? []
    }

    /// Whether the suite has a key that says which formats the collection has.
    func hasFormats(_ name: [UInt8]) -> Bool { collections[name]?.formats.isEmpty == false }

    mutating func remove(_ name: [UInt8]) {
        collections[name] = nil
    }

    // MARK: Records

    /// What the keys of a collection's records have behind `item` and `revision`; nil: nothing.
    func qualifier(of collection: UserDefaultsCollection) -> SuiteKey.Format? {
        guard let first = collections[collection.name]?.formats.first else { return nil }
        return first == collection.format ? nil : collection.format
    }

    subscript(_ collection: UserDefaultsCollection) -> RecordTable {
        get { collections[collection.name]?.tables[qualifier(of: collection)] ?? RecordTable() }
        _modify {
            let qualifier = qualifier(of: collection)
            yield &collections[collection.name, default: Collection()].tables[qualifier, default: RecordTable()]
        }
    }

    /// Has a sequence number count as used, and returns whether the ceiling has risen for it.
    mutating func reserve(_ sequence: UInt64) -> Bool {
        guard sequence > sequenceCeiling else { return false }
        sequenceCeiling = SequenceBlock.last(of: sequence)
        return true
    }
}
