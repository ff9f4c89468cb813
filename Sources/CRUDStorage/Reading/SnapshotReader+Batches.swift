import CRUDModel
import CRUDPluginCalls
import CRUDQuery

extension SnapshotReader {
    /// Executes batches: their results are set, they are not delivered yet.
    func execute(_ batches: [ReadBatch]) {
        for batch in batches { batch.prepareResults() }
        for call in CoalescedRead.all(of: batches) { call.execute(with: self) }
        for batch in batches {
            for (position, read) in batch.reads.enumerated() {
                guard case .count(let prefix) = read.kind, !batch.isRefused(position) else { continue }
                batch.set(count(Array(batch.bytes(prefix)), in: read.collection), at: position)
            }
        }
    }

    private func count(_ prefix: [UInt8], in collection: BackendCollection) -> ReadResult {
        do throws(CRUDError) {
            return .count(try count(RecordScan(idPrefix: prefix), of: collection))
        } catch {
            return .failed(error)
        }
    }
}
