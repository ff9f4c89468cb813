/// A part of a shard's memory that is filled in a circle: entries are appended at the head and taken from the tail, so
/// that their order is their age and no memory is lost between them. An entry that has been removed keeps its bytes
/// until the tail passes it.
struct CacheRing {
    /// From the start of the shard's memory.
    private let start: Int
    let size: Int
    private var head = 0
    private var tail = 0
    private(set) var used = 0

    init(start: Int, size: Int) {
        self.start = start
        self.size = size
    }

    var isEmpty: Bool { used == 0 }

    /// Where the oldest entry is, from the start of the shard's memory.
    var oldest: Int { start + tail }

    /// How much must be free to append an entry: the bytes up to the end count where it does not fit in front of it.
    private func need(_ count: Int) -> Int { head + count <= size ? count : size - head + count }

    func hasRoom(for count: Int) -> Bool { used + need(count) <= size }

    /// Takes room at the head; there must be some.
    ///
    /// - Returns: its offset from the start of the shard's memory.
    mutating func append(_ count: Int, in memory: UnsafeMutableRawPointer) -> Int {
        if head + count > size {
            if head < size {
                // What is left before the end belongs to an entry that nobody finds.
                memory.storeBytes(of: UInt32(size - head), toByteOffset: start + head, as: UInt32.self)
                memory.storeBytes(of: 0, toByteOffset: start + head + 4, as: UInt8.self)
                used += size - head
            }
            head = 0
        }
        defer {
            head += count
            used += count
        }
        return start + head
    }

    /// Gives up the oldest entry's bytes.
    mutating func removeOldest(_ count: Int) {
        tail += count
        if tail >= size { tail = 0 }
        used -= count
        if used == 0 { (head, tail) = (0, 0) }
    }

    mutating func removeAll() { (head, tail, used) = (0, 0, 0) }

    /// The places of its entries, the oldest first.
    func places(in memory: UnsafeMutableRawPointer) -> Places {
        Places(memory: memory, ring: self, position: tail, left: used)
    }

    struct Places: IteratorProtocol {
        let memory: UnsafeMutableRawPointer
        let ring: CacheRing
        var position: Int
        /// How many bytes are still to be passed.
        var left: Int

        mutating func next() -> Int? {
            guard left > 0 else { return nil }
            let place = ring.start + position
            let size = Int(CacheEntryPlace(memory: memory + place).header.pointee.size)
            left -= size
            position += size
            if position >= ring.size { position = 0 }
            return place
        }
    }
}
