import Glibc

/// Bytes of many small things in one allocation, which is what a batch hands to a plugin.
///
/// A place in it is an offset, since the allocation moves while it grows; once the batch is on its way nothing is
/// appended any more and addresses hold.
package struct ByteArena: ~Copyable {
    /// Where something stands in the arena.
    package struct Place: Sendable {
        var offset: Int
        var size: Int

        /// No bytes.
        package static let empty = Place(offset: 0, size: 0)

        package var count: Int { size }
    }

    private var base: UnsafeMutableRawPointer?
    package private(set) var count = 0
    private var capacity = 0

    package init() {}

    deinit { free(base) }

    /// Copies bytes into the arena.
    package mutating func append(_ bytes: Span<UInt8>) -> Place {
        // The buffer is used while the span is borrowed, and `append` only copies from it.
        bytes.withUnsafeBufferPointer { unsafe append(UnsafeRawBufferPointer($0)) }
    }

    /// Copies bytes into the arena.
    package mutating func append(_ bytes: UnsafeRawBufferPointer) -> Place {
        let place = Place(offset: count, size: bytes.count)
        reserve(bytes.count)
        // `reserve` has made room for so many bytes behind `count`.
        if let base, let source = bytes.baseAddress { memcpy(base + count, source, bytes.count) }
        count += bytes.count
        return place
    }

    /// Removes what has been appended since ``count`` was so much; no place of it may be used any more.
    package mutating func remove(from count: Int) { self.count = min(self.count, count) }

    /// The bytes at a place. They stay where they are until the arena is appended to or goes away.
    package func bytes(_ place: Place) -> UnsafeRawBufferPointer {
        // A place is made by `append` alone and lies within the allocation.
        UnsafeRawBufferPointer(start: base.map { UnsafeRawPointer($0 + place.offset) }, count: place.size)
    }

    private mutating func reserve(_ size: Int) {
        guard count + size > capacity else { return }
        let wanted = max(count + size, max(1024, capacity * 2))
        guard let larger = realloc(base, wanted) else {
            // As everywhere in Swift, running out of memory ends the process.
            fatalError("out of memory")
        }
        base = larger
        capacity = wanted
    }
}
