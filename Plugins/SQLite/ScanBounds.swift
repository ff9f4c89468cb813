import CRUDPluginKit

/// The range of a scan or count, as the parameters of its statement.
struct ScanBounds {
    /// What the range is ordered by.
    private(set) var order: CollectionStatement.Order
    /// What the statement is made for.
    let scope: StatementScope
    private let range: RecordRange

    /// - Throws: ``StorageFailure`` with `unsupported` for an index that the collection does not have.
    init(_ range: RecordRange, of collection: SQLiteCollection) throws(StorageFailure) {
        self.range = range
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
            scope = indexes[index]
        case .sequence:
            guard collection.layout.keepsSequences else {
                throw StorageFailure(
                    .unsupported, "table \(collection.tableName) was not opened for scans by sequence number")
            }
            order = range.isUnsequenced ? .unsequenced : .sequence
            scope = collection.scope
        }
    }

    /// The range of a scan, by rowid where the host allows that.
    init(_ request: borrowing ScanRequest, of collection: SQLiteCollection) throws(StorageFailure) {
        try self.init(request.range, of: collection)
        let isByID = request.afterPosition == 0 && !request.afterID.isEmpty
        if request.allowsAnyOrder, isUnbounded, !request.isReversed, !isByID { order = .rowID }
    }

    /// Whether every record of the collection is in the range.
    var isUnbounded: Bool { order == .id && range.lower.isEmpty && range.upper.isEmpty }

    /// Binds the bounds of a count.
    func bind(_ statement: Statement, _ session: ReadSession) throws(StorageFailure) {
        switch order {
        case .id, .unkeyed, .unsequenced: try bind(range.ids, statement, session)
        case .key:
            try session.check(statement.bind(1, blob: range.lower.isEmpty ? Self.leastKey : range.lower))
            try session.check(statement.bind(2, blob: range.upper.isEmpty ? Self.aboveAllKeys : range.upper))
        case .sequence: try bindSequences(statement, session)
        case .rowID: break
        }
    }

    /// Binds the bounds of a scan, or of what remains of it.
    func bind(
        _ statement: Statement, _ session: ReadSession, resuming request: borrowing ScanRequest
    ) throws(StorageFailure) {
        switch order {
        case .id, .unkeyed, .unsequenced: try bind(request.ids, statement, session)
        case .key: try bindPosition(statement, session, request)
        case .sequence: try bindSequences(statement, session)
        case .rowID: try session.check(statement.bind(1, integer: Statement.rowID(request.afterPosition)))
        }
    }

    private func bind(_ ids: IDRange, _ statement: Statement, _ session: ReadSession) throws(StorageFailure) {
        try session.check(statement.bind(1, copying: ids.lower))
        if let upper = ids.upper {
            try session.check(statement.bind(2, copying: upper))
        } else {
            // In SQLite's order every blob is above every text.
            try session.check(statement.bind(2, blob: emptyBytes))
        }
    }

    private func bindSequences(_ statement: Statement, _ session: ReadSession) throws(StorageFailure) {
        try session.check(statement.bind(1, integer: max(1, Int64(clamping: range.lowerSequence))))
        // No sequence number is below 1, so that there is one less than the bound.
        let greatest = range.upperSequence.map { Int64(clamping: $0 - 1) } ?? .max
        try session.check(statement.bind(2, integer: greatest))
    }

    // MARK: Positions among keys

    /// Binds the position, of a key and an id, that a scan by key starts behind, and the bound that it ends at.
    private func bindPosition(
        _ statement: Statement, _ session: ReadSession, _ request: borrowing ScanRequest
    ) throws(StorageFailure) {
        let start = request.isReversed ? range.upper : range.lower
        let isResumed =
            !request.afterID.isEmpty
            && (start.isEmpty || request.isReversed == request.afterKey.lexicographicallyPrecedes(start))
        if isResumed {
            try session.check(statement.bind(1, blob: request.afterKey))
            try session.check(statement.bind(2, text: request.afterID))
        } else if !start.isEmpty || request.isReversed {
            // No id is empty: what has this key is above the position.
            try session.check(statement.bind(1, blob: start.isEmpty ? Self.aboveAllKeys : start))
            try session.check(statement.bind(2, text: emptyBytes))
        } else {
            // Above all records whose key is empty, which have none.
            try session.check(statement.bind(1, blob: emptyBytes))
            try session.check(statement.bind(2, blob: emptyBytes))
        }
        let end = request.isReversed ? range.lower : range.upper
        let outermost = request.isReversed ? Self.leastKey : Self.aboveAllKeys
        try session.check(statement.bind(3, blob: end.isEmpty ? outermost : end))
    }

    /// The least key that there can be: an empty one stands for none.
    private static var leastKey: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: constants[..<1]) }
    /// Longer than any key, and above all of them.
    private static var aboveAllKeys: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: constants[1...]) }

    /// A zero, and 513 times the greatest byte; never freed.
    // Written before anybody else sees it, and never again.
    nonisolated(unsafe) private static let constants: UnsafeRawBufferPointer = {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 514, alignment: 1)
        bytes.initializeMemory(as: UInt8.self, repeating: 0xFF)
        bytes[0] = 0
        return UnsafeRawBufferPointer(bytes)
    }()
}
