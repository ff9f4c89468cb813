/// A collection as the ``RecordCache`` knows it now.
package struct CacheKey: Sendable, Equatable {
    /// No other collection, and none that has been opened at another time, has the same.
    var collection: UInt32
    /// Another one since somebody else has written to the storage: what was cached before is not valid any more.
    var epoch: UInt32
}

/// Allows to fill in what was not found, unless it is written meanwhile.
package struct CacheTicket: Sendable {
    var key: CacheKey
    var hash: UInt64
    var stripe: CacheStripe
}

/// What came of asking the cache.
package enum CacheOutcome: Sendable {
    case found
    /// It is known that there is no such record.
    case absent
    /// Nothing is known; nil: and nothing may be filled in, for a write is in progress.
    case miss(CacheTicket?)
}

/// A record on its way into the cache or out of it; its bytes belong to somebody else.
package struct CacheRecord {
    package var id: UnsafeRawBufferPointer
    /// JSON text.
    package var item: UnsafeRawBufferPointer
    package var revision: UnsafeRawBufferPointer
    /// Milliseconds since 1970-01-01 UTC; 0: never.
    package var expiresAt: Int64
    /// There is no record with that id.
    package var isAbsent = false

    package init(
        id: UnsafeRawBufferPointer, item: UnsafeRawBufferPointer, revision: UnsafeRawBufferPointer, expiresAt: Int64
    ) {
        self.id = id
        self.item = item
        self.revision = revision
        self.expiresAt = expiresAt
    }

    /// That there is no record with that id.
    package init(absent id: UnsafeRawBufferPointer) {
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        self.init(id: id, item: nothing, revision: nothing, expiresAt: 0)
        isAbsent = true
    }

    @inline(__always)
    init(_ entry: CacheEntryPlace) {
        self.init(
            id: entry.id, item: entry.item, revision: entry.revision, expiresAt: entry.header.pointee.expiresAt)
    }
}

/// What the cache has done since the start, and what it holds.
package struct CacheStatistics: Sendable, Equatable {
    package var hits = 0
    package var misses = 0
    package var evictions = 0
    package var entries = 0
    /// Of memory, all included.
    package var bytes = 0

    mutating func add(_ other: CacheStatistics) {
        hits += other.hits
        misses += other.misses
        evictions += other.evictions
        entries += other.entries
        bytes += other.bytes
    }
}
