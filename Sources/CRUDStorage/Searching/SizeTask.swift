import CRUDModel
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery

/// Counts the records of a collection and finds how long their ids and items are together, on a thread that reads. Only
/// the first records are read; of the others the length is estimated.
package final class SizeTask: ReadTask, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    /// How many records there are, when the task is done.
    package private(set) var count = 0
    /// The bytes of ids and items as they are stored.
    package private(set) var bytes = 0
    /// Whether ``bytes`` is the average of the first records times ``count``.
    package private(set) var isEstimate = false

    package override init(on collection: BackendCollection, deliver: @escaping @Sendable (WorkItem) -> Void) {
        super.init(on: collection, deliver: deliver)
    }

    override func advance(with reader: SnapshotReader, child: Child?, _ failures: FailureReporter) -> Bool {
        defer { reader.releaseSnapshot() }
        beginSlice()
        do throws(CRUDError) {
            count = try reader.count(RecordScan(.id), of: collection, isAbandoned: { isAbandoned })
            let sample = SizeSample()
            var scan = RecordScan(.id)
            scan.limit = SizeSample.maximumRecords
            try reader.scan(
                scan, of: collection, into: sample, continuesSnapshot: true, isAbandoned: { isAbandoned })
            isEstimate = sample.records > 0 && sample.records < count
            bytes = isEstimate ? Int(Double(sample.bytes) / Double(sample.records) * Double(count)) : sample.bytes
        } catch {
            failure = failure(of: error)
        }
        return true
    }
}

/// Measures the first records of a scan.
private final class SizeSample: RecordVisitor {
    static let maximumRecords = 256
    private static let maximumBytes = 1 << 20

    private(set) var records = 0
    private(set) var bytes = 0

    func visit(_ record: FoundRecord) -> Bool {
        records += 1
        bytes += record.id.count + record.item.count
        return bytes < Self.maximumBytes
    }
}
