/// What stands in front of the bytes of an entry in a ``CacheRing``; the id, the revision and the item follow.
struct CacheEntry {
    /// Of the entry with its header, a multiple of ``alignment``.
    var size: UInt32
    var state: State
    var revisionCount: UInt8
    var idCount: UInt16
    var hash: UInt32
    /// The number of the collection.
    var collection: UInt32
    var epoch: UInt32
    var itemCount: UInt32
    /// Milliseconds since 1970-01-01 UTC; 0: never.
    var expiresAt: Int64

    struct State: OptionSet {
        let rawValue: UInt8
        /// It has not been removed.
        static let live = State(rawValue: 0x80)
        /// It says that there is no such record.
        static let absent = State(rawValue: 0x40)

        /// How often it has been hit since it was inserted or given another chance, at most ``maximumHits``.
        var hits: UInt8 { rawValue & 0x03 }
        static let maximumHits: UInt8 = 3

        func with(hits: UInt8) -> State { State(rawValue: rawValue & ~0x03 | hits) }
    }

    static let headerBytes = MemoryLayout<CacheEntry>.stride
    static let alignment = 8
    /// The longest revision that is cached.
    static let maximumRevisionBytes = 64

    /// How many bytes an entry takes.
    static func size(id: Int, revision: Int, item: Int) -> Int {
        (headerBytes + id + revision + item + alignment - 1) & ~(alignment - 1)
    }
}

/// An entry where it stands; the pointer is valid while the shard is locked and nothing is inserted.
struct CacheEntryPlace {
    let memory: UnsafeMutableRawPointer

    /// The header.
    var header: UnsafeMutablePointer<CacheEntry> { memory.assumingMemoryBound(to: CacheEntry.self) }

    private func bytes(_ offset: Int, _ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: memory + CacheEntry.headerBytes + offset, count: count)
    }

    var id: UnsafeRawBufferPointer { bytes(0, Int(header.pointee.idCount)) }
    var revision: UnsafeRawBufferPointer { bytes(Int(header.pointee.idCount), Int(header.pointee.revisionCount)) }
    var item: UnsafeRawBufferPointer {
        bytes(Int(header.pointee.idCount) + Int(header.pointee.revisionCount), Int(header.pointee.itemCount))
    }

    /// Writes the bytes behind the header.
    func store(_ id: UnsafeRawBufferPointer, _ revision: UnsafeRawBufferPointer, _ item: UnsafeRawBufferPointer) {
        var end = memory + CacheEntry.headerBytes
        for part in [id, revision, item] {
            if let start = part.baseAddress { end.copyMemory(from: start, byteCount: part.count) }
            end += part.count
        }
    }
}
