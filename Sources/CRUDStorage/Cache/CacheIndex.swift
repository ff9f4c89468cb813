/// Finds entries by their hashes: an open-addressed table with linear probing, which removes by shifting back what
/// follows, so that it never fills with tombstones. It begins small, doubles, and is freed when it becomes empty.
///
/// A slot holds the 32 bits of the hash that say where it belongs, above the place of the entry; 0: empty.
struct CacheIndex: ~Copyable {
    private var slots: UnsafeMutablePointer<UInt64>?
    private(set) var slotCount = 0
    private(set) var count = 0
    /// A power of two.
    private let maximumSlots: Int

    private static let leastSlots = 256

    init(maximumSlots: Int) {
        self.maximumSlots = maximumSlots
    }

    deinit { slots?.deallocate() }

    var bytes: Int { slotCount * MemoryLayout<UInt64>.stride }

    /// Whether another entry can be inserted.
    var hasRoom: Bool { count < Self.capacity(maximumSlots) }

    /// At most 7/8 of the slots are taken: a hit then compares 4.5 of them on average, eight of which are a cache line.
    private static func capacity(_ slotCount: Int) -> Int { slotCount / 8 * 7 }

    /// The place of the first entry with that hash for which `isSame` holds.
    @inline(__always)
    func find(_ hash: UInt32, _ isSame: (Int) -> Bool) -> Int? {
        guard let slots else { return nil }
        var slot = Int(hash) & (slotCount - 1)
        while slots[slot] != 0 {
            let place = Self.place(slots[slot])
            if UInt32(slots[slot] >> 32) == hash, isSame(place) { return place }
            slot = (slot + 1) & (slotCount - 1)
        }
        return nil
    }

    private static func place(_ slot: UInt64) -> Int { (Int(slot & 0xFFFF_FFFF) - 1) * CacheEntry.alignment }

    private static func slot(_ hash: UInt32, _ place: Int) -> UInt64 {
        UInt64(hash) << 32 | UInt64(place / CacheEntry.alignment + 1)
    }

    mutating func insert(_ hash: UInt32, at place: Int) {
        if count >= Self.capacity(slotCount), slotCount < maximumSlots { grow() }
        put(Self.slot(hash, place))
        count += 1
    }

    private func put(_ value: UInt64) {
        guard let slots else { return }
        var slot = Int(value >> 32) & (slotCount - 1)
        while slots[slot] != 0 { slot = (slot + 1) & (slotCount - 1) }
        slots[slot] = value
    }

    private mutating func grow() {
        let old = UnsafeMutableBufferPointer(start: slots, count: slotCount)
        slotCount = max(Self.leastSlots, 2 * slotCount)
        slots = .allocate(capacity: slotCount)
        slots?.initialize(repeating: 0, count: slotCount)
        for slot in old where slot != 0 { put(slot) }
        old.deallocate()
    }

    /// The entry is at another place now.
    func move(_ hash: UInt32, from old: Int, to new: Int) {
        if let slot = slot(of: hash, old) { slots?[slot] = Self.slot(hash, new) }
    }

    private func slot(of hash: UInt32, _ place: Int) -> Int? {
        guard let slots else { return nil }
        let wanted = Self.slot(hash, place)
        var slot = Int(hash) & (slotCount - 1)
        while slots[slot] != wanted {
            guard slots[slot] != 0 else { return nil }
            slot = (slot + 1) & (slotCount - 1)
        }
        return slot
    }

    mutating func remove(_ hash: UInt32, at place: Int) {
        guard let slots, var hole = slot(of: hash, place) else { return }
        let mask = slotCount - 1
        var next = (hole + 1) & mask
        while slots[next] != 0 {
            // What does not stand further from home than the hole is from it has to stay.
            let home = Int(slots[next] >> 32) & mask
            if (next - home) & mask >= (next - hole) & mask {
                slots[hole] = slots[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        slots[hole] = 0
        count -= 1
    }

    mutating func removeAll() {
        slots?.deallocate()
        (slots, slotCount, count) = (nil, 0, 0)
    }
}
