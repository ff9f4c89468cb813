package import CRUDModel
import CRUDPluginCalls
import CRUDQuery
import Synchronization

extension Backend {
    /// Looks at a collection without opening it (``OpenStorage/probe(_:_:)``), and waits for that.
    ///
    /// - Returns: nil where it does not exist.
    /// - Throws: `unavailable` where that cannot be told.
    func probe(
        _ name: [UInt8], _ format: CollectionRule.Format, within timeout: Duration
    ) throws(CRUDError) -> BackendCollection? {
        let found = Mutex<BackendCollection?>(nil)
        try perform(within: timeout) { (storage) throws(CRUDError) in
            let probe = try storage.probe(name, format)
            found.withLock { $0 = probe }
        }
        return found.withLock { $0 }
    }

    /// Whether the storage has a collection in a format, with records or without. Nothing is changed by that.
    ///
    /// - Throws: `unavailable` where that cannot be told.
    package func has(
        _ name: [UInt8], _ format: CollectionRule.Format, within timeout: Duration
    ) throws(CRUDError) -> Bool {
        try probe(name, format, within: timeout) != nil
    }

    /// Whether bulk deletes, or writes that take long, of a collection are in progress, which ``drain(within:)`` does
    /// not wait for.
    ///
    /// - Throws: `unavailable` where that cannot be told.
    func isWriting(_ collection: BackendCollection.Key, within timeout: Duration) throws(CRUDError) -> Bool {
        let isWriting = Mutex(false)
        try perform(within: timeout) { storage in isWriting.withLock { $0 = storage.isWriting(collection) } }
        return isWriting.withLock { $0 }
    }

    /// Whether a collection has any record in a format, or may get one by a write that is in progress. Nothing is
    /// changed by that.
    ///
    /// - Throws: `unavailable` where that cannot be told.
    package func hasRecords(
        _ name: [UInt8], _ format: CollectionRule.Format, within timeout: Duration
    ) throws(CRUDError) -> Bool {
        // First: what ends behind this can be found.
        if try isWriting(.init(name: name, format: format), within: timeout) { return true }
        guard let probe = try probe(name, format, within: timeout) else { return false }
        return try !ids(of: probe, atMost: 1, within: timeout).isEmpty
    }

    /// Counts the records of a collection in a format. Nothing is changed by that.
    ///
    /// - Throws: `unavailable` where that cannot be told.
    package func count(
        _ name: [UInt8], _ format: CollectionRule.Format, within timeout: Duration
    ) throws(CRUDError) -> Int {
        guard let probe = try probe(name, format, within: timeout) else { return 0 }
        let counted = Mutex(0)
        try read(within: timeout) { reader throws(CRUDError) in
            let count = try reader.count(RecordScan(.id), of: probe)
            counted.withLock { $0 = count }
        }
        guard probe.isOpen else { throw failures.unavailable }
        return counted.withLock { $0 }
    }

    /// Lists ids of an open collection, in order.
    ///
    /// - Throws: `unavailable` where it has been closed meanwhile, so that nothing was found.
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
        guard collection.isOpen else { throw failures.unavailable }
        return list.ids
    }
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
