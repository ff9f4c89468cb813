import Glibc

/// A contiguous byte buffer: bytes are appended at the end and removed from the front.
///
/// An empty buffer owns no memory. Growing at least doubles the capacity, so that appending is nearly always a memcpy;
/// a buffer that becomes empty frees its memory. Offsets count from the first byte that has not been removed. So they
/// are valid until bytes are removed: for a stream's output, until the iteration ends.
///
///     let start = output.count
///     output.append(bigEndian: 0)
///     …
///     output.overwrite(at: start, bigEndian: UInt32(output.count - start - 4))
package struct StreamBuffer: ~Copyable {
    /// The smallest allocation: several short replies.
    private static let leastCapacity = 4096
    /// How much is kept unused in any case.
    private static let keptCapacity = 64 << 10

    // The bytes are at `start..<end` of `memory`, which malloc(3) has allocated with `capacity` bytes; where it is nil,
    // all of the numbers are 0. Only this file changes them.
    @usableFromInline internal private(set) var memory: UnsafeMutableRawPointer?
    @usableFromInline internal private(set) var capacity = 0
    @usableFromInline internal private(set) var start = 0
    @usableFromInline internal var end = 0

    package init() {}

    deinit {
        free(memory)
    }

    @inlinable package var count: Int { end &- start }
    @inlinable package var isEmpty: Bool { end == start }

    // MARK: Appending

    @inlinable
    package mutating func append(_ byte: UInt8) {
        room(for: 1).storeBytes(of: byte, as: UInt8.self)
        end &+= 1
    }

    @inlinable
    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress, bytes.count > 0 else { return }
        room(for: bytes.count).copyMemory(from: source, byteCount: bytes.count)
        end &+= bytes.count
    }

    @inlinable
    package mutating func append(_ bytes: Span<UInt8>) {
        // The pointer does not outlive the closure.
        unsafe bytes.withUnsafeBytes { unsafe append($0) }
    }

    @inlinable
    package mutating func append(_ text: StaticString) {
        // A StaticString's bytes live as long as the process.
        unsafe append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends the contents of another buffer.
    package mutating func append(_ other: borrowing StreamBuffer) {
        append(other.bytes)
    }

    /// Appends four bytes, the most significant first.
    @inlinable
    package mutating func append(bigEndian value: UInt32) {
        room(for: 4).storeBytes(of: value.bigEndian, as: UInt32.self)
        end &+= 4
    }

    /// Replaces four bytes at `offset`, the most significant first.
    @inlinable
    package mutating func overwrite(at offset: Int, bigEndian value: UInt32) {
        precondition(offset >= 0 && offset <= count - 4, "no such bytes")
        // There are bytes, hence memory.
        (memory! + start + offset).storeBytes(of: value.bigEndian, as: UInt32.self)
    }

    /// Removes what was appended after the buffer had `count` bytes.
    @inlinable
    package mutating func truncate(to count: Int) {
        precondition(count >= 0 && count <= self.count, "no such bytes")
        end = start &+ count
    }

    /// Frees what is unused, where that is much more than growing leaves.
    package mutating func shrink() {
        guard capacity - end > max(Self.keptCapacity, end) else { return }
        if isEmpty { return removeAll() }
        guard let shrunk = realloc(memory, end) else { return }
        (memory, capacity) = (shrunk, end)
    }

    /// Where the next byte goes; there is room for `count` of them.
    @inlinable
    mutating func room(for count: Int) -> UnsafeMutableRawPointer {
        if capacity &- end < count { makeRoom(for: count) }
        // makeRoom has allocated memory if there was none.
        return memory! + end
    }

    @usableFromInline @inline(never)
    mutating func makeRoom(for added: Int) {
        reserve(max(count + added, 2 * count, Self.leastCapacity))
    }

    // MARK: The stream's side

    /// The bytes, in place until the buffer changes.
    package var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(start: memory, count: end)[start...])
    }

    /// The memory behind the bytes; what is written there counts once ``extend(by:)`` says so.
    var spareRoom: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(start: memory, count: capacity)[end...])
    }

    /// Appends the first `count` bytes of ``spareRoom``, which the caller has written there.
    mutating func extend(by count: Int) {
        precondition(count >= 0 && count <= capacity - end, "more than there was room for")
        end += count
    }

    /// Makes room for `wanted` bytes in all, the present ones included, and for no more than that.
    mutating func reserve(_ wanted: Int) {
        guard wanted > capacity - start else { return }
        if start > 0 {
            // Moving the bytes to the front may make growing unnecessary; and realloc need not copy removed bytes.
            memory?.copyMemory(from: memory! + start, byteCount: count)
            (start, end) = (0, count)
            guard wanted > capacity else { return }
        }
        // As everywhere in Swift, running out of memory ends the process.
        guard let grown = realloc(memory, wanted) else { fatalError("out of memory for \(wanted) bytes") }
        (memory, capacity) = (grown, wanted)
    }

    /// Removes bytes from the front; frees the memory if these are all, and most of it if these are most.
    mutating func removeFirst(_ count: Int) {
        precondition(count >= 0 && count <= self.count, "no such bytes")
        start += count
        if isEmpty { return removeAll() }
        guard start > max(Self.keptCapacity, self.count), let memory else { return }
        memory.copyMemory(from: memory + start, byteCount: self.count)
        (start, end) = (0, self.count)
        shrink()
    }

    mutating func removeAll() {
        free(memory)
        (memory, capacity, start, end) = (nil, 0, 0, 0)
    }

    /// Takes what another buffer has given up; this one owns no memory.
    mutating func adopt(_ block: UnsafeMutableRawPointer) {
        (memory, capacity) = (block, Self.leastCapacity)
    }

    /// Removes all bytes, and gives up the memory: it is the caller's, for another buffer. An allocation of another
    /// than the usual size is freed.
    mutating func giveUp() -> UnsafeMutableRawPointer? {
        guard capacity == Self.leastCapacity else {
            removeAll()
            return nil
        }
        defer { (memory, capacity, start, end) = (nil, 0, 0, 0) }
        return memory
    }
}
