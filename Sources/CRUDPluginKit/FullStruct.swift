/// A copy of a struct that the host has made, with zeros for the fields that an older host does not know.
///
/// - Parameter pointer: to a C struct of the contract, which begins with its size as the host knows it.
@inlinable
func fullStruct<Struct>(_ pointer: UnsafePointer<Struct>) -> Struct {
    let size = Int(UnsafeRawPointer(pointer).load(as: UInt32.self))
    return size >= MemoryLayout<Struct>.size ? pointer.pointee : fullStruct(pointer, size: size)
}

/// A copy of the first `size` bytes of a C struct, with zeros behind them.
@usableFromInline
func fullStruct<Struct>(_ pointer: UnsafeRawPointer, size: Int) -> Struct {
    withUnsafeTemporaryAllocation(of: Struct.self, capacity: 1) { copy in
        let bytes = UnsafeMutableRawBufferPointer(copy)
        bytes.initializeMemory(as: UInt8.self, repeating: 0)
        bytes.copyMemory(from: UnsafeRawBufferPointer(start: pointer, count: min(size, bytes.count)))
        return copy[0]
    }
}
