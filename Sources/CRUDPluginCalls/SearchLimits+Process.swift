package import CRUDFormats
import CRUDModel
package import CRUDQuery
import Glibc

extension SearchLimits {
    /// Of a search on a thread that has other things to do.
    package static let onThread = SearchLimits(
        longRecords: .handedOver(LongRecordThreads.searching), memory: .ofThisProcess)
}

extension SearchMemory {
    /// Half of what a child may make its own, 256 MiB at the most.
    fileprivate static let ofThisProcess: SearchMemory = {
        let most = 256 << 20
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_DATA.rawValue), &limit) == 0 else {
            return SearchMemory(bytes: most)
        }
        return SearchMemory(bytes: Int(min(limit.rlim_cur / 2, rlim_t(most))))
    }()
}

extension QueryTarget {
    /// - Parameter maximumItemBytes: how long the text of an item may be.
    package init(_ name: [UInt8], indexes: [QueryIndex], _ codec: Codec, maximumItemBytes: Int) {
        guard !codec.keepsText else {
            self.init(name: name, indexes: indexes)
            return
        }
        self.init(name: name, indexes: indexes) { (stored, item, work) throws(CRUDError) in
            try codec.decode(stored: stored, into: &item, maximumBytes: maximumItemBytes, &work)
        }
    }
}
