package import CRUDModel

extension Backend {
    /// Looks for records of a collection that is to be moved here, under any format: one name would stand for both.
    ///
    /// - Parameter known: places of the collection's own records.
    /// - Returns: where there are records; nil: nowhere.
    /// - Throws: `unavailable` where that cannot be told.
    package func recordsInTheWay(
        of name: [UInt8], to destination: CollectionPlace, except known: [CollectionPlace]
    ) throws(CRUDError) -> CollectionPlace? {
        for format in CollectionRule.Format.allCases {
            let place = CollectionPlace(backend: self.name, format: format)
            guard place == destination || !known.contains(place) else { continue }
            if try hasRecords(name, format, within: Self.lookTimeout) { return place }
        }
        return nil
    }

    /// How long it may take to look for records.
    private static let lookTimeout = Duration.seconds(10)

    /// Has a collection without records, of which copies are going to be made here, begin anew
    /// (``OpenStorage/beginAnew(_:)``).
    func beginAnew(
        _ name: [UInt8], _ format: CollectionRule.Format, within timeout: Duration
    ) throws(CRUDError) {
        let collection = collection(name, format)
        try perform(within: timeout) { (storage) throws(CRUDError) in try storage.beginAnew(collection) }
    }

    /// Removes the records that a collection has in one format.
    ///
    /// - Parameter isShared: whether those in other formats stay.
    /// - Returns: whether there were any.
    package func removeRecords(
        of name: [UInt8], in format: CollectionRule.Format, isShared: Bool, within timeout: Duration
    ) throws(CRUDError) -> Bool {
        if !isShared {
            do throws(CRUDError) {
                return try drop(name, isEmpty: false, within: timeout) {}
            } catch {
                guard error.code == .unsupported else { throw error }
            }
        }
        guard let collection = try probe(name, format, within: timeout) else { return false }
        var hasRemoved = false
        while true {
            let ids = try ids(of: collection, atMost: Self.removedAtOnce, within: timeout)
            if ids.isEmpty { return hasRemoved }
            hasRemoved = true
            let page = CopyPage(ids)
            try perform(within: timeout) { storage throws(CRUDError) in
                guard collection.isOpen else { throw storage.failures.unavailable }
                try page.store(in: collection, with: storage)
            }
        }
    }

    /// How many records are removed in one call.
    private static let removedAtOnce = 500
}
