import CRUDPluginABI

/// One change of one record.
package struct PluginMutation {
    private let collection: PluginCollection
    private let kind: Int
    private let precondition: Precondition
    private let record: PluginRecord
    private let keys: [[UInt8]]
    /// Nil: that of its place in the order of all mutations.
    package var sequence: UInt64?
    /// The size of the record as an older host knows it; nil: as this package knows it.
    package var recordBytes: Int?

    package enum Precondition: Sendable {
        case none, absent, present
        case revision(String)
        /// One that the contract does not define.
        case undefined
    }

    /// - Parameters:
    ///   - sequence: 0: that of its place in the order of all mutations.
    ///   - keys: one for each index; those that are not given are empty.
    package static func put(
        _ id: String, _ item: String, revision: String = "1", expiresAt: Int64 = 0, sequence: UInt64 = 0,
        keys: [String] = [], if precondition: Precondition = .none, in collection: PluginCollection
    ) -> PluginMutation {
        put(
            PluginRecord(id, item, revision: revision, expiresAt: expiresAt, sequence: sequence),
            keys: keys.map { Array($0.utf8) }, if: precondition, in: collection)
    }

    package static func put(
        _ id: String, bytes item: [UInt8], revision: String = "1", if precondition: Precondition = .none,
        in collection: PluginCollection
    ) -> PluginMutation {
        put(PluginRecord(id, bytes: item, revision: revision), if: precondition, in: collection)
    }

    /// - Parameter keys: one for each index; those that are not given are empty.
    package static func put(
        _ record: PluginRecord, keys: [[UInt8]] = [], if precondition: Precondition = .none,
        in collection: PluginCollection
    ) -> PluginMutation {
        PluginMutation(
            collection: collection, kind: CRUDD_PUT, precondition: precondition, record: record, keys: keys,
            sequence: record.sequence == 0 ? nil : record.sequence)
    }

    package static func remove(
        _ id: String, if precondition: Precondition = .none, in collection: PluginCollection
    ) -> PluginMutation {
        PluginMutation(CRUDD_REMOVE, id, precondition, collection)
    }

    package static func check(
        _ id: String, if precondition: Precondition, in collection: PluginCollection
    ) -> PluginMutation {
        PluginMutation(CRUDD_CHECK, id, precondition, collection)
    }

    /// - Parameter keys: one for each index; those that are not given are empty.
    package static func setKeys(
        _ id: String, _ keys: [[UInt8]], ifRevision revision: String, in collection: PluginCollection
    ) -> PluginMutation {
        setKeys(id, keys, if: .revision(revision), in: collection)
    }

    package static func setKeys(
        _ id: String, _ keys: [[UInt8]], if precondition: Precondition, in collection: PluginCollection
    ) -> PluginMutation {
        PluginMutation(CRUDD_SET_KEYS, id, precondition, collection, keys: keys)
    }

    /// A mutation of a kind that the contract does not define.
    package static func undefined(_ id: String, in collection: PluginCollection) -> PluginMutation {
        PluginMutation(9, id, .none, collection)
    }

    private init(
        _ kind: Int, _ id: String, _ precondition: Precondition, _ collection: PluginCollection, keys: [[UInt8]] = []
    ) {
        self.init(
            collection: collection, kind: kind, precondition: precondition,
            record: PluginRecord(id, bytes: [], revision: ""), keys: keys)
    }

    private init(
        collection: PluginCollection, kind: Int, precondition: Precondition, record: PluginRecord, keys: [[UInt8]],
        sequence: UInt64? = nil
    ) {
        self.collection = collection
        self.kind = kind
        self.precondition = precondition
        self.record = record
        self.keys = keys
        self.sequence = sequence
    }

    /// The mutation as the contract has it, its bytes in `memory`.
    func raw(_ memory: CallMemory) -> crudd_mutation {
        var raw = crudd_mutation()
        raw.collection = collection.handle
        raw.kind = UInt32(kind)
        raw.precondition =
            switch precondition {
            case .none: UInt32(CRUDD_IF_ANY)
            case .absent: UInt32(CRUDD_IF_ABSENT)
            case .present: UInt32(CRUDD_IF_PRESENT)
            case .revision: UInt32(CRUDD_IF_REVISION)
            case .undefined: 9
            }
        if case .revision(let revision) = precondition { raw.expected = memory.copy(revision) }
        var contents = crudd_record()
        contents.id = memory.copy(record.id)
        contents.item = memory.copy(record.bytes)
        contents.revision = memory.copy(record.revision)
        contents.expires_at = record.expiresAt
        contents.sequence = sequence ?? 0
        let padded = keys + [[UInt8]](repeating: [], count: max(0, collection.indexCount - keys.count))
        contents.keys = memory.array(padded)
        contents.key_count = padded.count
        let copy = memory.copy(contents)
        if let recordBytes { copy.pointee.struct_size = UInt32(recordBytes) }
        raw.record = UnsafePointer(copy)
        return raw
    }
}

/// The outcome of one mutation.
package enum PluginOutcome: Equatable, Sendable {
    case applied(replaced: Bool)
    case mismatch(current: String)
    case refused(Int)

    package static let created = PluginOutcome.applied(replaced: false)
    package static let replaced = PluginOutcome.applied(replaced: true)
    package static let removed = PluginOutcome.applied(replaced: false)
    /// Of a check, or of keys that were set.
    package static let passed = PluginOutcome.applied(replaced: false)
    package static let exists = PluginOutcome.refused(CRUDD_EXISTS)
    package static let notFound = PluginOutcome.refused(CRUDD_NOT_FOUND)
    package static let noSpace = PluginOutcome.refused(CRUDD_NO_SPACE)
    package static let unsupported = PluginOutcome.refused(CRUDD_UNSUPPORTED)

    init(_ outcome: crudd_outcome) throws(CallError) {
        let status = Int(outcome.status)
        switch status {
        case CRUDD_OK where outcome.replaced > 1: throw .violation("`replaced` of an outcome is \(outcome.replaced)")
        case CRUDD_OK: self = .applied(replaced: outcome.replaced != 0)
        case CRUDD_MISMATCH:
            let size = Int(outcome.revision_size)
            guard size <= MemoryLayout.size(ofValue: outcome.revision) else {
                throw .violation("`revision_size` of an outcome is \(size)")
            }
            self = .mismatch(
                current: withUnsafeBytes(of: outcome.revision) { String(decoding: $0.prefix(size), as: UTF8.self) })
        default:
            guard StatusText.isKnown(status) else {
                throw .violation("an outcome has the status \(status), which does not exist")
            }
            self = .refused(status)
        }
    }
}

extension PluginOutcome: CustomStringConvertible {
    package var description: String {
        switch self {
        case .applied(replaced: true): "CRUDD_OK with `replaced`"
        case .applied(replaced: false): "CRUDD_OK"
        case .mismatch(let current): "CRUDD_MISMATCH with revision \"\(current)\""
        case .refused(let status): StatusText.of(status)
        }
    }
}
