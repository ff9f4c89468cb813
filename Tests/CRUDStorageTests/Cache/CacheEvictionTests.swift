import CRUDTestSupport
import Glibc
import Testing

@testable import CRUDStorage

/// The hit ratios that ``CacheShard`` claims.
@Suite struct CacheEvictionTests {
    private static let keys = 10_000
    private static let requests = 150_000

    enum Trace: CaseIterable {
        /// The Zipfian distribution of YCSB.
        case zipfian
        /// The same, and now and then a scan over a third of the keys.
        case scans
    }

    /// The keys of a trace, one after the other.
    private func keys(of trace: Trace) -> [Int] {
        var random = SeededGenerator(seed: 12)
        var sums: [Double] = []
        var sum = 0.0
        for rank in 1...Self.keys {
            sum += pow(Double(rank), -0.99)
            sums.append(sum)
        }
        var keys: [Int] = []
        while keys.count < Self.requests {
            let value = Double(random.next() >> 11) / 0x1p53 * sum
            var (low, high) = (0, Self.keys - 1)
            while low < high {
                let middle = (low + high) / 2
                if sums[middle] < value { low = middle + 1 } else { high = middle }
            }
            keys.append(low)
            if trace == .scans, keys.count.isMultiple(of: 10_000) {
                let first = Int(random.next() % UInt64(Self.keys))
                keys += (0..<Self.keys / 3).map { (first + $0) % Self.keys }
            }
        }
        return keys
    }

    /// The hits of the cache, and how many records it held in the end.
    private func hits(_ keys: [Int]) -> (hits: Int, capacity: Int) {
        var shard = CacheShard(bytes: 320 << 10)
        let collection = CacheKey(collection: 1, epoch: 0)
        let item = Array(repeating: UInt8(ascii: "x"), count: 200)
        var generator = SeededGenerator(seed: 1)
        let hashes = (0..<Self.keys).map { _ in generator.next() }
        for key in keys {
            withUnsafeBytes(of: key) { id in
                guard case .miss(let ticket?) = shard.find(collection, hashes[key], id, now: { 0 }, { _ in })
                else { return }
                item.withUnsafeBytes { item in
                    let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
                    shard.fill(ticket, CacheRecord(id: id, item: item, revision: nothing, expiresAt: 0))
                }
            }
        }
        return (shard.statistics.hits, shard.statistics.entries)
    }

    /// The hits of a cache for so many records that evicts what has not been used for longest.
    private func hitsOfLRU(_ keys: [Int], capacity: Int) -> Int {
        // A ring of all keys, -1 standing for both ends: the most recent first.
        var next = Array(repeating: -1, count: Self.keys + 1)
        var previous = next
        let end = Self.keys
        next[end] = end
        previous[end] = end
        var isCached = Array(repeating: false, count: Self.keys)
        var (count, hits) = (0, 0)
        func unlink(_ key: Int) {
            next[previous[key]] = next[key]
            previous[next[key]] = previous[key]
        }
        for key in keys {
            if isCached[key] {
                hits += 1
                unlink(key)
            } else if count == capacity {
                isCached[previous[end]] = false
                unlink(previous[end])
            } else {
                count += 1
            }
            isCached[key] = true
            (next[key], previous[key]) = (next[end], end)
            previous[next[end]] = key
            next[end] = key
        }
        return hits
    }

    @Test(arguments: zip(Trace.allCases, [(0.75, 0.70), (0.54, 0.46)]))
    func keepsWhatIsUsed(trace: Trace, documented: (ratio: Double, lru: Double)) {
        let keys = keys(of: trace)
        let (hits, capacity) = hits(keys)
        #expect(capacity == 1280)
        let ratio = Double(hits) / Double(keys.count)
        let lru = Double(hitsOfLRU(keys, capacity: capacity)) / Double(keys.count)
        #expect(abs(ratio - documented.ratio) < 0.006)
        #expect(abs(lru - documented.lru) < 0.006)
    }
}
