import Glibc

/// Memory that outputs of streams have given up, for the next ones.
///
/// An output that has been written owns no memory, so that idle streams cost none. The next reply needs some: most
/// often of the same loop, in the next iteration. It gets a block from here, and nothing is allocated.
struct SpareMemory: ~Copyable {
    /// More streams than that seldom have output in the same iteration.
    private static let maximumBlocks = 64

    private var blocks: [UnsafeMutableRawPointer] = []

    init() {
        blocks.reserveCapacity(Self.maximumBlocks)
    }

    deinit {
        for block in blocks { free(block) }
    }

    /// Gives memory to a buffer that has none, if there is any.
    mutating func supply(_ buffer: inout StreamBuffer) {
        guard let block = blocks.popLast() else { return }
        buffer.adopt(block)
    }

    /// Removes all bytes of a buffer, and keeps its memory if there are not many blocks yet.
    mutating func reclaim(_ buffer: inout StreamBuffer) {
        guard blocks.count < Self.maximumBlocks else { return buffer.removeAll() }
        if let block = buffer.giveUp() { blocks.append(block) }
    }
}
