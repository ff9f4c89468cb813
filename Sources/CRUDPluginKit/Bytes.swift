public import CRUDPluginABI

extension UnsafeRawBufferPointer {
    @inlinable
    init(_ bytes: crudd_bytes) {
        self.init(start: bytes.data, count: bytes.size)
    }
}

extension crudd_bytes {
    @inlinable
    init(_ bytes: UnsafeRawBufferPointer) {
        self.init(data: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), size: bytes.count)
    }
}
