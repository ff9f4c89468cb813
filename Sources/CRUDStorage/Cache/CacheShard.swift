import Glibc

/// A part of the ``RecordCache``, behind a lock of its own: entries, found by collection and id, evicted by S3-FIFO.
///
/// **Eviction.** S3-FIFO (Yang, Zhang, Qiu, Yue, Vinayak: FIFO queues are all you need for cache eviction, SOSP '23,
/// https://dl.acm.org/doi/10.1145/3600006.3613147) keeps three queues. A new entry goes to the *small* one, a tenth of
/// the memory. At its end it moves to the *main* one if it has been hit, or if that has room; else it is evicted, and
/// the *ghosts*, a table of hashes, remember it for a while: if it comes again, it goes to the main queue at once. At
/// the end of the main queue an entry that has been hit gets another chance for each of up to three hits. So a scan
/// passes through a tenth of the memory and leaves the rest alone.
///
/// It was chosen over LRU and SIEVE because its queues never reorder: they are two rings of bytes (``CacheRing``),
/// which take entries of any size without fragmentation, links between entries or a free list, and a hit writes two
/// bits. Hit ratios on 10 000 keys, in a cache that has room for 1 280 of them (`CacheEvictionTests` computes them):
///
/// | trace | S3-FIFO | LRU |
/// | --- | --- | --- |
/// | Zipfian, exponent 0.99 | 0.75 | 0.70 |
/// | the same, a third of it scans over a third of the keys | 0.54 | 0.46 |
///
/// **Coherence.** A *stripe* stands for the records whose hashes fall on it. It counts the writes in progress and those
/// that have ended. While one is in progress, entries of the stripe are not served: the write may be visible in the
/// storage and may not. An entry is filled only if since before its record was read no write to its stripe has been in
/// progress, begun or ended.
// @unchecked: the memory that it points to is its own.
struct CacheShard: ~Copyable, @unchecked Sendable {
    private var layout: Layout
    /// Mapped when the first entry comes.
    private var memory: UnsafeMutableRawPointer?
    private var small: CacheRing
    private var main: CacheRing
    private var index: CacheIndex
    private var ghosts: UnsafeMutablePointer<UInt32>?
    private let stripes: UnsafeMutablePointer<CacheStripe>
    private var counts = CacheStatistics()

    private static let stripeCount = 256
    /// How many entries of the main queue get another chance in a row before one that deserves it is evicted all the
    /// same: a lock is not held for long.
    private static let maximumChances = 64

    /// How the bytes of a shard are divided.
    private struct Layout {
        /// Of entries.
        let memoryBytes: Int
        let smallBytes: Int
        let slotCount: Int
        let ghostCount: Int

        private static let pageBytes = 4096
        /// An entry of an average record takes 300 bytes; the tables suffice for entries of half of that.
        private static let bytesPerSlot = 128

        init(bytes: Int) {
            slotCount = 1 << max(8, Int.bitWidth - 1 - (bytes / Self.bytesPerSlot).leadingZeroBitCount)
            ghostCount = slotCount / 2
            let tables = slotCount * MemoryLayout<UInt64>.stride + ghostCount * MemoryLayout<UInt32>.stride
            memoryBytes = max(0, bytes - tables) & ~(Self.pageBytes - 1)
            smallBytes = memoryBytes / 10 & ~(CacheEntry.alignment - 1)
        }

        var small: CacheRing { CacheRing(start: 0, size: smallBytes) }
        var main: CacheRing { CacheRing(start: smallBytes, size: memoryBytes - smallBytes) }
        var index: CacheIndex { CacheIndex(maximumSlots: slotCount) }
    }

    /// - Parameter bytes: what it may take, all included.
    init(bytes: Int) {
        layout = Layout(bytes: bytes)
        small = layout.small
        main = layout.main
        index = layout.index
        stripes = .allocate(capacity: Self.stripeCount)
        stripes.initialize(repeating: CacheStripe(), count: Self.stripeCount)
    }

    deinit {
        if let memory { munmap(memory, layout.memoryBytes) }
        ghosts?.deallocate()
        stripes.deallocate()
    }

    /// Changes what it may take; it is empty then. Writes in progress stay known.
    mutating func resize(to bytes: Int) {
        if let memory { munmap(memory, layout.memoryBytes) }
        memory = nil
        ghosts?.deallocate()
        ghosts = nil
        layout = Layout(bytes: bytes)
        small = layout.small
        main = layout.main
        index = layout.index
    }

    /// The largest entry: half of the small queue.
    var maximumEntryBytes: Int { layout.smallBytes / 2 }

    var statistics: CacheStatistics {
        var statistics = counts
        statistics.entries = index.count
        let ghostBytes = ghosts == nil ? 0 : layout.ghostCount * MemoryLayout<UInt32>.stride
        statistics.bytes = small.used + main.used + index.bytes + ghostBytes
        return statistics
    }

    // MARK: Finding

    /// Finds an entry and counts the hit.
    ///
    /// - Parameter body: gets the entry, valid until it returns.
    @inline(__always)
    mutating func find(
        _ key: CacheKey, _ hash: UInt64, _ id: UnsafeRawBufferPointer, now: () -> Int64,
        _ body: (CacheEntryPlace) -> Void
    ) -> CacheOutcome {
        let stripe = stripes[Self.stripe(hash)]
        guard !stripe.isWriting else {
            counts.misses += 1
            return .miss(nil)
        }
        if let place = place(key.collection, hash, id) {
            let entry = entry(place)
            if entry.header.pointee.epoch == key.epoch {
                let expiresAt = entry.header.pointee.expiresAt
                if expiresAt == 0 || expiresAt > now() {
                    let state = entry.header.pointee.state
                    if state.hits < CacheEntry.State.maximumHits {
                        entry.header.pointee.state = state.with(hits: state.hits + 1)
                    }
                    counts.hits += 1
                    if state.contains(.absent) { return .absent }
                    body(entry)
                    return .found
                }
            }
            remove(place)
        }
        counts.misses += 1
        return .miss(CacheTicket(key: key, hash: hash, stripe: stripe))
    }

    @inline(__always)
    private func place(_ collection: UInt32, _ hash: UInt64, _ id: UnsafeRawBufferPointer) -> Int? {
        guard let memory else { return nil }
        return index.find(UInt32(truncatingIfNeeded: hash)) { place in
            let entry = CacheEntryPlace(memory: memory + place)
            guard entry.header.pointee.collection == collection, Int(entry.header.pointee.idCount) == id.count
            else { return false }
            guard let bytes = id.baseAddress, let own = entry.id.baseAddress else { return id.isEmpty }
            return memcmp(bytes, own, id.count) == 0
        }
    }

    private func entry(_ place: Int) -> CacheEntryPlace {
        guard let memory else { preconditionFailure("there is an entry, hence memory") }
        return CacheEntryPlace(memory: memory + place)
    }

    private static func stripe(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash >> 32) & (stripeCount - 1) }

    // MARK: Filling

    /// Inserts a record that has been read, unless a write to it has come in between.
    mutating func fill(_ ticket: CacheTicket, _ record: CacheRecord) {
        guard stripes[Self.stripe(ticket.hash)] == ticket.stripe else { return }
        if let place = place(ticket.key.collection, ticket.hash, record.id) {
            let entry = entry(place)
            let isSame =
                entry.header.pointee.epoch == ticket.key.epoch && entry.revision.elementsEqual(record.revision)
                && entry.header.pointee.state.contains(.absent) == record.isAbsent
            if isSame { return }
            // Of two reads one may have seen what somebody else has written; which is the newer cannot be told.
            let isRace = entry.header.pointee.epoch == ticket.key.epoch
            remove(place)
            if isRace { return }
        }
        insert(ticket.key, ticket.hash, record)
    }

    private mutating func insert(_ key: CacheKey, _ hash: UInt64, _ record: CacheRecord) {
        let size = CacheEntry.size(id: record.id.count, revision: record.revision.count, item: record.item.count)
        guard size <= maximumEntryBytes, record.revision.count <= CacheEntry.maximumRevisionBytes,
            let memory = mapped()
        else { return }
        while !index.hasRoom { evictOne() }
        let shortHash = UInt32(truncatingIfNeeded: hash)
        let place: Int
        if takeGhost(hash) {
            makeRoomInMain(for: size)
            place = main.append(size, in: memory)
        } else {
            while !small.hasRoom(for: size) { evictFromSmall() }
            place = small.append(size, in: memory)
        }
        let entry = CacheEntryPlace(memory: memory + place)
        entry.header.pointee = CacheEntry(
            size: UInt32(size), state: record.isAbsent ? [.live, .absent] : .live,
            revisionCount: UInt8(record.revision.count), idCount: UInt16(record.id.count), hash: shortHash,
            collection: key.collection, epoch: key.epoch, itemCount: UInt32(record.item.count),
            expiresAt: record.expiresAt)
        entry.store(record.id, record.revision, record.item)
        index.insert(shortHash, at: place)
    }

    private mutating func mapped() -> UnsafeMutableRawPointer? {
        if let memory { return memory }
        guard layout.memoryBytes > 0 else { return nil }
        let mapping = mmap(
            nil, layout.memoryBytes, PROT_READ | PROT_WRITE, CInt(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE), -1, 0)
        guard mapping != MAP_FAILED, let mapping else { return nil }
        // A shard with a few entries must not take two megabytes.
        madvise(mapping, layout.memoryBytes, CInt(MADV_NOHUGEPAGE))
        memory = mapping
        ghosts = .allocate(capacity: layout.ghostCount)
        ghosts?.initialize(repeating: 0, count: layout.ghostCount)
        return mapping
    }

    // MARK: Writes

    /// A write to a record begins: it is not served from the cache until that has ended.
    mutating func beginWrite(_ hash: UInt64) {
        stripes[Self.stripe(hash)].begin()
    }

    /// A write has ended.
    ///
    /// - Parameter record: what is stored now; nil if that is not known or there is no record any more.
    mutating func endWrite(_ key: CacheKey, _ hash: UInt64, _ id: UnsafeRawBufferPointer, _ record: CacheRecord?) {
        stripes[Self.stripe(hash)].end()
        guard let place = place(key.collection, hash, id) else { return }
        let isCurrent = entry(place).header.pointee.epoch == key.epoch
        guard let record, isCurrent else { return remove(place) }
        // A record that has been wanted stays.
        if replace(place, record) { return }
        remove(place)
        insert(key, hash, record)
    }

    /// Replaces the contents of an entry in its place, if they are as long.
    private mutating func replace(_ place: Int, _ record: CacheRecord) -> Bool {
        let entry = entry(place)
        let size = CacheEntry.size(id: record.id.count, revision: record.revision.count, item: record.item.count)
        guard size == Int(entry.header.pointee.size), record.revision.count <= CacheEntry.maximumRevisionBytes
        else { return false }
        entry.header.pointee.state.remove(.absent)
        entry.header.pointee.revisionCount = UInt8(record.revision.count)
        entry.header.pointee.itemCount = UInt32(record.item.count)
        entry.header.pointee.expiresAt = record.expiresAt
        entry.store(record.id, record.revision, record.item)
        return true
    }

    // MARK: Removing

    private mutating func remove(_ place: Int) {
        let header = entry(place).header
        header.pointee.state.remove(.live)
        index.remove(header.pointee.hash, at: place)
        if index.count == 0 { removeAll() }
    }

    /// Removes the entries of a collection.
    mutating func removeAll(of collection: UInt32) {
        guard let memory else { return }
        for ring in [small, main] {
            var places = ring.places(in: memory)
            while let place = places.next() {
                let header = CacheEntryPlace(memory: memory + place).header
                guard header.pointee.state.contains(.live), header.pointee.collection == collection else { continue }
                remove(place)
                // The rings are empty with the last entry.
                if index.count == 0 { return }
            }
        }
    }

    /// Removes every entry and gives the memory back.
    mutating func removeAll() {
        index.removeAll()
        // One record that comes and goes is not worth system calls.
        let isLittle = small.used + main.used < 1 << 16
        small.removeAll()
        main.removeAll()
        if let memory, !isLittle { madvise(memory, layout.memoryBytes, CInt(MADV_DONTNEED)) }
    }
}

// MARK: - Eviction

extension CacheShard {
    private mutating func evictOne() {
        if small.isEmpty { evictFromMain() } else { evictFromSmall() }
    }

    /// Takes the oldest entry from the small queue: to the main queue, or out.
    private mutating func evictFromSmall() {
        let place = small.oldest
        let entry = entry(place)
        let size = Int(entry.header.pointee.size)
        let state = entry.header.pointee.state
        guard state.contains(.live) else { return small.removeOldest(size) }
        if state.hits > 0 {
            makeRoomInMain(for: size)
        } else if !main.hasRoom(for: size) {
            remember(entry.header.pointee.hash)
            evict(place)
            return small.removeOldest(size)
        }
        moveToMain(place, size, state.with(hits: 0))
        small.removeOldest(size)
    }

    private mutating func moveToMain(_ old: Int, _ size: Int, _ state: CacheEntry.State) {
        guard let memory else { return }
        let new = main.append(size, in: memory)
        // Within the main queue they may overlap.
        memmove(memory + new, memory + old, size)
        let header = CacheEntryPlace(memory: memory + new).header
        header.pointee.state = state
        index.move(header.pointee.hash, from: old, to: new)
    }

    private mutating func makeRoomInMain(for size: Int) {
        var chances = Self.maximumChances
        while !main.hasRoom(for: size) {
            let place = main.oldest
            let header = entry(place).header
            let oldSize = Int(header.pointee.size)
            let state = header.pointee.state
            main.removeOldest(oldSize)
            guard state.contains(.live) else { continue }
            if state.hits > 0, chances > 0, main.hasRoom(for: oldSize) {
                chances -= 1
                moveToMain(place, oldSize, state.with(hits: state.hits - 1))
            } else {
                evict(place)
            }
        }
    }

    private mutating func evictFromMain() {
        let place = main.oldest
        let header = entry(place).header
        let size = Int(header.pointee.size)
        if header.pointee.state.contains(.live) { evict(place) }
        main.removeOldest(size)
    }

    private mutating func evict(_ place: Int) {
        let header = entry(place).header
        index.remove(header.pointee.hash, at: place)
        counts.evictions += 1
    }

    // MARK: Ghosts

    // A table with one place for each hash: a later hash overwrites an earlier one, so that old ones are forgotten.

    private func remember(_ hash: UInt32) {
        ghosts?[Int(hash) & (layout.ghostCount - 1)] = hash | 1
    }

    /// Whether an entry has been evicted from the small queue lately; it is forgotten then.
    private func takeGhost(_ hash: UInt64) -> Bool {
        let hash = UInt32(truncatingIfNeeded: hash)
        let slot = Int(hash) & (layout.ghostCount - 1)
        guard let ghosts, ghosts[slot] == hash | 1 else { return false }
        ghosts[slot] = 0
        return true
    }
}
