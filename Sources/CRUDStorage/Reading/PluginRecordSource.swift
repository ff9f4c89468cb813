package import CRUDModel
package import CRUDQuery

/// The records of an open collection, read through a plugin: what the query executor works on, in the daemon and next
/// to the plugin in a child.
package final class PluginRecordSource: RecordSource {
    private let reader: SnapshotReader
    private let collection: BackendCollection
    private let isAbandoned: () -> Bool

    /// - Parameter isAbandoned: whether nobody waits for the result any more.
    package init(_ reader: SnapshotReader, _ collection: BackendCollection, isAbandoned: @escaping () -> Bool) {
        self.reader = reader
        self.collection = collection
        self.isAbandoned = isAbandoned
    }

    package func scan(_ scan: RecordScan, into visitor: any RecordVisitor) throws(CRUDError) {
        try reader.scan(scan, of: collection, into: visitor, isAbandoned: isAbandoned)
    }

    package func count(_ scan: RecordScan, limit: Int) throws(CRUDError) -> Int {
        try reader.count(scan, limit: limit, of: collection, isAbandoned: isAbandoned)
    }
}
