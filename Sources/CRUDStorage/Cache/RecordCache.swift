import CRUDPluginHost
import Synchronization

/// Records that have been read lately, over all backends that can tell when somebody else has written: their items as
/// JSON text, whatever the format they are stored in, or that there is none.
///
/// It is divided into shards by the hash of collection and id (``CacheShard``). What is found is copied out while its
/// shard is locked; nothing is allocated and no reference is counted for that.
package final class RecordCache: @unchecked Sendable {
    // @unchecked: the shards are behind locks.
    private let shards: UnsafeMutablePointer<Mutex<CacheShard>>
    private let isEnabledNow: Atomic<Bool>
    private let lastCollection = Atomic<UInt32>(0)
    /// Nobody can choose ids that collide.
    private let seed = UInt64.random(in: .min ... .max)

    private static let shardBits = 4
    private static let shardCount = 1 << shardBits

    /// - Parameter bytes: what it may take, all included; 0: it stays empty.
    package init(bytes: Int) {
        shards = .allocate(capacity: Self.shardCount)
        for index in 0..<Self.shardCount {
            (shards + index).initialize(to: Mutex(CacheShard(bytes: bytes / Self.shardCount)))
        }
        isEnabledNow = Atomic(bytes > 0)
    }

    deinit {
        shards.deinitialize(count: Self.shardCount)
        shards.deallocate()
    }

    package var isEnabled: Bool { isEnabledNow.load(ordering: .relaxed) }

    /// A number that no collection has had.
    func makeCollection() -> UInt32 { lastCollection.add(1, ordering: .relaxed).newValue }

    // MARK: Reading

    /// Finds a record.
    ///
    /// - Parameter body: gets it; its bytes are gone when it returns.
    package func find(
        _ key: CacheKey, _ id: Span<UInt8>, _ body: (CacheRecord) -> Void
    ) -> CacheOutcome {
        id.withUnsafeBytes { id in
            let hash = hash(key.collection, id)
            return shard(hash).pointee.withLock { shard in
                shard.find(key, hash, id, now: { CallContext.now }) { body(CacheRecord($0)) }
            }
        }
    }

    /// Keeps what has been read, unless it may be outdated.
    ///
    /// - Parameter ticket: of the miss, which came before the read began.
    package func fill(_ ticket: CacheTicket, _ record: CacheRecord) {
        shard(ticket.hash).pointee.withLock { $0.fill(ticket, record) }
    }

    // MARK: Writes

    func beginWrite(_ collection: UInt32, _ id: UnsafeRawBufferPointer) {
        let hash = hash(collection, id)
        shard(hash).pointee.withLock { $0.beginWrite(hash) }
    }

    func endWrite(_ key: CacheKey, _ id: UnsafeRawBufferPointer, _ record: CacheRecord?) {
        let hash = hash(key.collection, id)
        shard(hash).pointee.withLock { $0.endWrite(key, hash, id, record) }
    }

    /// Removes the entries of a collection.
    func removeAll(of collection: UInt32) {
        for index in 0..<Self.shardCount { shards[index].withLock { $0.removeAll(of: collection) } }
    }

    // MARK: Administration

    /// What it has done, and what it holds.
    package var statistics: CacheStatistics {
        var sum = CacheStatistics()
        for index in 0..<Self.shardCount { sum.add(shards[index].withLock { $0.statistics }) }
        return sum
    }

    /// Changes how many bytes it may take; it is empty then.
    package func resize(to bytes: Int) {
        isEnabledNow.store(bytes > 0, ordering: .relaxed)
        for index in 0..<Self.shardCount {
            shards[index].withLock { $0.resize(to: bytes / Self.shardCount) }
        }
    }

    // MARK: Hashing

    private func shard(_ hash: UInt64) -> UnsafeMutablePointer<Mutex<CacheShard>> {
        shards + Int(truncatingIfNeeded: hash >> UInt64(64 - Self.shardBits))
    }

    /// Multiplies eight bytes at a time and folds the product, as wyhash does (https://github.com/wangyi-fudan/wyhash).
    private func hash(_ collection: UInt32, _ id: UnsafeRawBufferPointer) -> UInt64 {
        var hash = Self.fold(seed ^ UInt64(collection), 0xA076_1D64_78BD_642F)
        var offset = 0
        while id.count - offset >= 8 {
            let word = id.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            hash = Self.fold(hash ^ word, 0xE703_7ED1_A0B4_28DB)
            offset += 8
        }
        var rest = UInt64(id.count)
        while offset < id.count {
            rest = rest << 8 | UInt64(id[offset])
            offset += 1
        }
        return Self.fold(hash ^ rest, 0x8EBC_6AF0_9C88_C6E3)
    }

    private static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}
