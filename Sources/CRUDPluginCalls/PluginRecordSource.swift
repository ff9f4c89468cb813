package import CRUDModel
package import CRUDQuery

/// The records of an open collection, read through a plugin: what the query executor works on, in the daemon and next
/// to the plugin in a child. There is one for each slice, whose calls see one snapshot where the plugin has snapshots.
package final class PluginRecordSource: RecordSource {
    private let reader: SnapshotReader
    private let collection: any PluginCollection
    private let isAbandoned: () -> Bool
    private var hasSnapshot = false

    /// - Parameter isAbandoned: whether nobody waits for the result any more.
    package init(_ reader: SnapshotReader, _ collection: any PluginCollection, isAbandoned: @escaping () -> Bool) {
        self.reader = reader
        self.collection = collection
        self.isAbandoned = isAbandoned
    }

    package func scan(_ scan: RecordScan, into visitor: any RecordVisitor) throws(CRUDError) {
        defer { hasSnapshot = true }
        try reader.scan(
            scan, of: collection, into: visitor, continuesSnapshot: hasSnapshot, isAbandoned: isAbandoned)
    }

    package func count(_ scan: RecordScan, limit: Int) throws(CRUDError) -> Int {
        defer { hasSnapshot = true }
        return try reader.count(
            scan, limit: limit, of: collection, continuesSnapshot: hasSnapshot, isAbandoned: isAbandoned)
    }
}
