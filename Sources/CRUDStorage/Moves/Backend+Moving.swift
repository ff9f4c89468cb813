package import CRUDModel
import CRUDPluginHost
import CRUDQuery

extension Backend {
    /// Lists ids of an open collection, in order.
    func ids(
        of collection: BackendCollection, after last: [UInt8] = [], atMost maximum: Int, within timeout: Duration
    ) throws(CRUDError) -> [[UInt8]] {
        let list = IDList()
        try read(within: timeout) { reader throws(CRUDError) in
            var scan = RecordScan(.id)
            scan.after = last.isEmpty ? nil : (key: [], id: last)
            scan.limit = maximum
            scan.withItems = false
            try reader.scan(scan, of: collection, into: list)
        }
        return list.ids
    }

    /// Whether a collection has any record.
    ///
    /// - Throws: `unavailable` where that cannot be told.
    package func hasRecords(_ collection: BackendCollection, within timeout: Duration) throws(CRUDError) -> Bool {
        try perform(within: timeout) { storage throws(CRUDError) in
            if !collection.isOpen { try storage.open(collection) }
        }
        return try !ids(of: collection, atMost: 1, within: timeout).isEmpty
    }

    /// Looks for records of a collection that is to be moved here, under any format: one name would stand for both.
    ///
    /// - Parameters:
    ///   - indexPaths: of the collection in its new place.
    ///   - known: places of the collection's own records.
    /// - Returns: where there are records; nil: nowhere.
    /// - Throws: `unavailable` where that cannot be told.
    package func recordsInTheWay(
        of name: [UInt8], to destination: CollectionPlace, _ indexPaths: [PropertyPath], except known: [CollectionPlace]
    ) throws(CRUDError) -> CollectionPlace? {
        for format in CollectionRule.Format.allCases {
            let place = CollectionPlace(backend: self.name, format: format)
            guard place == destination || !known.contains(place) else { continue }
            let collection = BackendCollection(
                name: name, format: format, indexPaths: place == destination ? indexPaths : [])
            if try hasRecords(collection, within: Self.lookTimeout) { return place }
        }
        return nil
    }

    /// How long it may take to look for records.
    private static let lookTimeout = Duration.seconds(10)

    /// Removes the records that a collection has in one format.
    ///
    /// - Parameter isShared: whether those in other formats stay.
    /// - Returns: whether there were any.
    package func removeRecords(
        of name: [UInt8], in format: CollectionRule.Format, isShared: Bool, within timeout: Duration
    ) throws(CRUDError) -> Bool {
        let collection = BackendCollection(name: name, format: format)
        if !isShared {
            do throws(CRUDError) {
                return try drop(collection, isEmpty: false, within: timeout) {}
            } catch {
                guard error.code == .unsupported else { throw error }
            }
        }
        guard try hasRecords(collection, within: timeout) else { return false }
        while true {
            let ids = try ids(of: collection, atMost: Self.removedAtOnce, within: timeout)
            guard collection.isOpen else { throw failures.unavailable }
            if ids.isEmpty { return true }
            let page = CopyPage(ids)
            try perform(within: timeout) { storage throws(CRUDError) in try page.store(in: collection, with: storage) }
        }
    }

    /// How many records are removed in one call.
    private static let removedAtOnce = 500
}

/// Gathers the ids that a scan finds.
private final class IDList: RecordVisitor, @unchecked Sendable {
    // @unchecked: it belongs to the thread that scans until the scan is done.
    private(set) var ids: [[UInt8]] = []

    func visit(_ record: FoundRecord) -> Bool {
        ids.append(Array(record.id))
        return true
    }
}
