import CRUDPluginABI
import Glibc

/// The memory of one call: what it hands over to the plugin stays at its address until ``free()``.
final class CallMemory {
    /// What stands behind the fields that this package knows.
    private static let filler: UInt8 = 0xA5

    /// By how many bytes the structs are longer than this package knows them, as those of a later host would be; a
    /// multiple of 8.
    private let surplus: Int
    private var blocks: [UnsafeMutableRawPointer] = []

    init(surplus: Int) {
        self.surplus = surplus
    }

    func free() {
        for block in blocks { block.deallocate() }
        blocks = []
    }

    /// The size of a struct as the plugin sees it.
    func size<Struct>(of type: Struct.Type) -> Int { MemoryLayout<Struct>.stride + surplus }

    /// Copies a struct of the contract and fills in its `struct_size`.
    func copy<Struct>(_ value: Struct) -> UnsafeMutablePointer<Struct> {
        copies([value])
    }

    /// Copies structs of the contract into an array whose elements are ``size(of:)`` bytes apart.
    func copies<Struct>(_ values: [Struct]) -> UnsafeMutablePointer<Struct> {
        let size = size(of: Struct.self)
        let memory = allocate(max(1, values.count) * size)
        memset(memory, Int32(Self.filler), values.count * size)
        for (number, value) in values.enumerated() {
            let element = memory + number * size
            element.bindMemory(to: Struct.self, capacity: 1).initialize(to: value)
            // `struct_size` comes first in every struct.
            element.storeBytes(of: UInt32(size), as: UInt32.self)
        }
        return memory.assumingMemoryBound(to: Struct.self)
    }

    func copy(_ bytes: [UInt8]) -> crudd_bytes {
        // Without bytes, a pointer that must not be used.
        guard !bytes.isEmpty else { return crudd_bytes() }
        let memory = allocate(bytes.count)
        memory.copyMemory(from: bytes, byteCount: bytes.count)
        return crudd_bytes(data: memory.assumingMemoryBound(to: UInt8.self), size: bytes.count)
    }

    func copy(_ text: String) -> crudd_bytes { copy(Array(text.utf8)) }

    func array(_ texts: [[UInt8]]) -> UnsafePointer<crudd_bytes>? {
        guard !texts.isEmpty else { return nil }
        let memory = allocate(texts.count * MemoryLayout<crudd_bytes>.stride)
            .bindMemory(to: crudd_bytes.self, capacity: texts.count)
        for (number, text) in texts.enumerated() { (memory + number).initialize(to: copy(text)) }
        return UnsafePointer(memory)
    }

    private func allocate(_ byteCount: Int) -> UnsafeMutableRawPointer {
        let block = UnsafeMutableRawPointer.allocate(byteCount: byteCount, alignment: 16)
        blocks.append(block)
        return block
    }
}

extension crudd_bytes {
    var array: [UInt8] { Array(UnsafeBufferPointer(start: data, count: size)) }
    /// What is not valid UTF-8 becomes U+FFFD.
    var text: String { String(decoding: UnsafeBufferPointer(start: data, count: size), as: UTF8.self) }
}
