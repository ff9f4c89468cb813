/// The writes to the records whose hashes fall on a stripe of a ``CacheShard``.
struct CacheStripe: Equatable, Sendable {
    private var writing: UInt32 = 0
    private var ended: UInt32 = 0

    var isWriting: Bool { writing > 0 }

    mutating func begin() { writing += 1 }

    mutating func end() {
        writing -= 1
        ended &+= 1
    }
}
