import CRUDPluginKit

/// The range of a scan or count, as a statement and its parameters, and where the next page of it begins.
struct ScanBounds {
    private(set) var scan: CollectionStatement.Scan
    /// What the statement is made for.
    let scope: StatementScope
    private var ids: (lower: [UInt8], upper: [UInt8])
    /// By key: the position of the start, and the far bound.
    private var keys: (start: [UInt8], id: [UInt8], end: [UInt8])
    private var sequences: (least: Int64, greatest: Int64)

    private static let leastKey: [UInt8] = [0]
    /// Longer than any key, and above all of them.
    private static let aboveAllKeys = [UInt8](repeating: 0xFF, count: 513)

    /// The range of a count.
    ///
    /// - Throws: ``StorageFailure`` with `unsupported` for an index that the collection does not have.
    init(_ range: RecordRange, of collection: PostgreSQLCollection) throws(StorageFailure) {
        try self.init(range, of: collection, isReversed: false, withItems: false)
    }

    /// What a scan has yet to visit.
    init(_ request: borrowing ScanRequest, of collection: PostgreSQLCollection) throws(StorageFailure) {
        try self.init(
            request.range, of: collection, isReversed: request.isReversed, withItems: request.wantsItems)
        switch scan.order {
        case .sequence: break
        case .id, .unkeyed, .unsequenced: resume(afterID: Array(request.afterID))
        case .key: if !request.afterID.isEmpty { resume(Array(request.afterKey), Array(request.afterID)) }
        }
    }

    private init(
        _ range: RecordRange, of collection: PostgreSQLCollection, isReversed: Bool, withItems: Bool
    ) throws(StorageFailure) {
        let order: CollectionStatement.Scan.Order
        switch range.order {
        case .id:
            order = .id
            scope = collection.scope
        case .key(let index):
            let indexes = collection.layout.indexes
            guard indexes.indices.contains(index) else {
                throw StorageFailure(.unsupported, "table \(collection.tableName) has no index \(index)")
            }
            order = range.isUnkeyed ? .unkeyed : .key
            guard let ready = indexes[index].scope else {
                throw Self.missing("index \(indexes[index].number) of table \(collection.tableName)", collection)
            }
            scope = ready
        case .sequence:
            guard collection.layout.keepsSequences else {
                throw StorageFailure(
                    .unsupported, "table \(collection.tableName) was not opened for scans by sequence number")
            }
            guard collection.layout.hasSequenceIndexes else { throw Self.missingSequences(collection) }
            order = range.isUnsequenced ? .unsequenced : .sequence
            scope = collection.scope
        }
        let (lower, upper) = (Array(range.lower), Array(range.upper))
        scan = CollectionStatement.Scan(
            order: order, isReversed: isReversed, withItems: withItems, hasUpper: !upper.isEmpty)
        ids = (lower, upper)
        let start = isReversed ? upper : lower
        let end = isReversed ? lower : upper
        // No id is empty: what has the key of the start is behind the position, or before it in a reversed scan.
        keys = (
            start.isEmpty ? (isReversed ? Self.aboveAllKeys : Self.leastKey) : start, [],
            end.isEmpty ? (isReversed ? Self.leastKey : Self.aboveAllKeys) : end
        )
        sequences = (
            Int64(clamping: max(range.lowerSequence, 1)), range.upperSequence.map { Int64(clamping: $0 - 1) } ?? .max
        )
        if order == .key || order == .sequence { scan.hasUpper = false }
    }

    static func missingSequences(_ collection: PostgreSQLCollection) -> StorageFailure {
        missing("the index of table \(collection.tableName) for its changes", collection)
    }

    private static func missing(_ index: String, _ collection: PostgreSQLCollection) -> StorageFailure {
        let state = collection.refusal.map { "cannot be made yet: \($0); it is tried again" } ?? "is being made"
        return StorageFailure(.unavailable, "\(index) \(state)")
    }

    var parameters: Parameters {
        var parameters = Parameters()
        switch scan.order {
        case .id, .unkeyed, .unsequenced:
            parameters.add(copying: ids.lower)
            if scan.hasUpper { parameters.add(copying: ids.upper) }
        case .key:
            parameters.add(copying: keys.start)
            parameters.add(copying: keys.id)
            parameters.add(copying: keys.end)
        case .sequence:
            parameters.add(sequences.least)
            parameters.add(sequences.greatest)
        }
        return parameters
    }

    /// Makes the range begin behind a row of a page.
    mutating func resume(after row: Int, of page: QueryResult) {
        switch scan.order {
        case .id, .unkeyed, .unsequenced: resume(afterID: Array(page.bytes(row, 0)))
        case .key: resume(Array(page.bytes(row, 5)), Array(page.bytes(row, 0)))
        case .sequence:
            let sequence = page.integer(row, 3)
            if scan.isReversed { sequences.greatest = sequence - 1 } else { sequences.least = sequence + 1 }
        }
    }

    private mutating func resume(afterID id: [UInt8]) {
        if id.isEmpty { return }
        if scan.isReversed {
            if !scan.hasUpper || id.lexicographicallyPrecedes(ids.upper) { ids.upper = id }
            scan.hasUpper = true
        } else if !id.lexicographicallyPrecedes(ids.lower) {
            ids.lower = id
            scan.excludesLower = true
        }
    }

    private mutating func resume(_ key: [UInt8], _ id: [UInt8]) {
        let isBehind =
            scan.isReversed ? key.lexicographicallyPrecedes(keys.start) : !key.lexicographicallyPrecedes(keys.start)
        if isBehind { (keys.start, keys.id) = (key, id) }
    }
}
