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

    /// Has a collection that is not served here begin anew (``OpenStorage/beginAnew(_:)``).
    package func beginAnew(
        _ name: [UInt8], _ format: CollectionRule.Format, within timeout: Duration
    ) throws(CRUDError) {
        let collection = collection(name, format)
        try perform(within: timeout) { (storage) throws(CRUDError) in try storage.beginAnew(collection) }
    }

    /// Whether requests that take long still read what ``remove(_:in:isShared:within:)`` would remove, as they began
    /// before the collection got to another place. Each ends in the time that a request may take.
    package func isBeingRead(_ name: [UInt8], in format: CollectionRule.Format, isShared: Bool) -> Bool {
        let formats = isShared ? [format] : CollectionRule.Format.allCases
        return formats.contains { collection(name, $0).isBeingRead }
    }

    /// Removes what there is of a collection in one format: at once, or some records of it.
    ///
    /// - Parameter isShared: whether what there is in other formats stays.
    /// - Returns: whether nothing is left.
    package func remove(
        _ name: [UInt8], in format: CollectionRule.Format, isShared: Bool, within timeout: Duration
    ) throws(CRUDError) -> Bool {
        if !isShared {
            do throws(CRUDError) {
                _ = try drop(name, within: timeout)
                return true
            } catch {
                guard error.code == .unsupported else { throw error }
            }
        }
        guard let collection = try probe(name, format, within: timeout) else { return true }
        let ids = try ids(of: collection, atMost: Self.removedAtOnce, within: timeout)
        if ids.isEmpty {
            // What is created there later begins anew.
            try perform(within: timeout) { $0.closeCollection(named: name, in: format) }
            return true
        }
        let page = CopyPage(ids)
        try perform(within: timeout) { storage throws(CRUDError) in
            guard collection.isOpen else { throw storage.failures.unavailable }
            try page.store(in: collection, with: storage)
        }
        return false
    }

    /// How many records are removed in one call.
    private static let removedAtOnce = 500
}
