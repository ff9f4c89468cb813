import CRUDPluginKit

/// What the commits of a log make when they are made again, in their order.
struct Recovery {
    private var recovered: [UInt32: Recovered] = [:]
    /// What is still needed of the log.
    private(set) var live = LiveRecords()
    /// The greatest number of a collection.
    private(set) var lastCollection: UInt32 = 0

    /// A collection in the course of it.
    private final class Recovered {
        var records: Set<ByID> = []
        var removals: Set<BySequence> = []
        /// What the collection is; nil: a commit that follows says it.
        var description: Record?
        var state: CollectionState?
    }

    /// A record that another one with the same id is equal to.
    private struct ByID: Hashable {
        let record: Record
        /// That of the id, so that the record itself is rarely read.
        private let idHash: Int

        init(_ record: Record) {
            self.record = record
            idHash = record.withPosition { id in
                var hasher = Hasher()
                hasher.combine(bytes: id)
                return hasher.finalize()
            }
        }

        static func == (one: ByID, other: ByID) -> Bool {
            one.idHash == other.idHash
                && one.record.withPosition { id in other.record.withPosition { id.compare(to: $0) == 0 } }
        }

        func hash(into hasher: inout Hasher) { hasher.combine(idHash) }
    }

    /// A removal that another one with the same number and id is equal to.
    private struct BySequence: Hashable {
        let removal: Record

        static func == (one: BySequence, other: BySequence) -> Bool {
            one.removal.sequence == other.removal.sequence && ByID(one.removal) == ByID(other.removal)
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(removal.sequence)
        }
    }

    // MARK: Commits

    /// Makes a commit again.
    ///
    /// - Throws: ``StorageFailure`` with `corrupt` for what is none.
    mutating func replay(_ payload: UnsafeRawBufferPointer, _ segment: UInt64) throws(StorageFailure) {
        var rest = payload
        let headerSize = MemoryLayout<Record.LoggedHeader>.size
        while !rest.isEmpty {
            guard rest.count >= headerSize else { throw Self.damage("an entry ends early") }
            let header = rest.loadUnaligned(as: Record.LoggedHeader.self)
            guard let kind = Changes.Entry(rawValue: header.kind) else {
                throw Self.damage("there is an entry of kind \(header.kind)")
            }
            guard header.bytesSize <= rest.count - headerSize else { throw Self.damage("an entry ends early") }
            let end = headerSize + header.bytesSize
            try replay(kind, header, UnsafeRawBufferPointer(rebasing: rest[headerSize..<end]), segment)
            rest = UnsafeRawBufferPointer(rebasing: rest[end...])
        }
    }

    private mutating func replay(
        _ kind: Changes.Entry, _ header: Record.LoggedHeader, _ bytes: UnsafeRawBufferPointer, _ segment: UInt64
    ) throws(StorageFailure) {
        lastCollection = max(lastCollection, header.collection)
        if kind == .dropped {
            drop(header.collection)
            return
        }
        let collection = recovered[header.collection] ?? Recovered()
        recovered[header.collection] = collection
        switch kind {
        case .record: store(Record(header, .record, bytes: bytes), in: collection, segment)
        case .removal: remember(Record(header, .removal, bytes: bytes), in: collection, segment)
        case .collection: try describe(Record(header, .collection, bytes: bytes), collection, segment)
        case .removed: remove(Record(header, .removal, bytes: bytes), from: collection)
        case .remembered:
            let removal = Record(header, .removal, bytes: bytes)
            remove(removal, from: collection)
            remember(removal, in: collection, segment)
        case .dropped: break
        }
    }

    private mutating func store(_ record: Record, in collection: Recovered, _ segment: UInt64) {
        if let old = collection.records.update(with: ByID(record)) { live.remove(old.record) }
        live.append(record, segment: segment)
    }

    private mutating func remove(_ removal: Record, from collection: Recovered) {
        if let old = collection.records.remove(ByID(removal)) { live.remove(old.record) }
    }

    private mutating func remember(_ removal: Record, in collection: Recovered, _ segment: UInt64) {
        if let old = collection.removals.update(with: BySequence(removal: removal)) { live.remove(old.removal) }
        live.append(removal, segment: segment)
    }

    private mutating func describe(
        _ record: Record, _ collection: Recovered, _ segment: UInt64
    ) throws(StorageFailure) {
        guard let state = CollectionState(record) else { throw Self.damage("an entry says nothing of a collection") }
        if state.historyIdentity == 0 {
            for removal in collection.removals { live.remove(removal.removal) }
            collection.removals = []
        }
        if let old = collection.description { live.remove(old) }
        live.append(record, segment: segment)
        collection.description = record
        collection.state = state
    }

    private mutating func drop(_ number: UInt32) {
        guard let collection = recovered.removeValue(forKey: number) else { return }
        for record in collection.records { live.remove(record.record) }
        for removal in collection.removals { live.remove(removal.removal) }
        if let description = collection.description { live.remove(description) }
    }

    private static func damage(_ what: String) -> StorageFailure { StorageFailure(.corrupt, what) }

    // MARK: The outcome

    /// The collections, when everything has been made again.
    mutating func collections(_ host: Host) throws(StorageFailure) -> [MemoryCollection] {
        var collections: [MemoryCollection] = []
        for (number, collection) in recovered {
            guard let state = collection.state, let description = collection.description else {
                throw Self.damage("the log does not say what collection \(number) is")
            }
            let removals = collection.removals.map(\.removal)
            for removal in removals where removal.sequence <= state.forgotten { live.remove(removal) }
            let records = Self.sorted(collection.records)
            collection.records = []
            guard records.allSatisfy(\.hasValidKeys) else { throw Self.damage("an entry has keys that end early") }
            let content = RecordSet(
                records, removals: removals.filter { $0.sequence > state.forgotten }, state)
            collections.append(
                MemoryCollection(
                    number: number, name: state.name, format: state.format, content, described: description))
            host.progress(UInt64(collections.count), of: UInt64(recovered.count))
        }
        return collections
    }

    /// Records by id. Most comparisons are between the first bytes, which are beside the record.
    private static func sorted(_ records: Set<ByID>) -> [Record] {
        let prefixed = records.map { key in (prefix: key.record.withPosition { $0.prefix }, record: key.record) }
        return prefixed.sorted { one, other in
            let order = one.prefix.compare(to: other.prefix)
            if order != 0 { return order < 0 }
            return one.record.withPosition { id in other.record.withPosition { id.compare(to: $0) < 0 } }
        }.map(\.record)
    }
}
