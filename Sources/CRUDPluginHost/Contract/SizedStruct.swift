package import CRUDPluginABI

/// A struct of the plugin contract that begins with its own size, as the side that made it knows it.
///
/// Both sides may be of different versions: ``read(_:)`` copies what both know and takes the rest as zero.
package protocol SizedStruct {
    init()
    // swift-format-ignore: AlwaysUseLowerCamelCase
    // The name is the contract's.
    var struct_size: UInt32 { get set }
}

extension SizedStruct {
    /// A struct of zeros, but for its size.
    package static func sized() -> Self {
        var value = Self()
        value.struct_size = UInt32(MemoryLayout<Self>.size)
        return value
    }

    /// Copies a struct of the other side, which may be shorter or longer than ours.
    @inline(__always)
    package static func read(_ pointer: UnsafePointer<Self>) -> Self {
        // The size stands first in every struct, so that it may be read whatever the size is.
        let size = Int(unsafe UnsafeRawPointer(pointer).load(as: UInt32.self))
        return size >= MemoryLayout<Self>.size ? pointer.pointee : prefix(of: pointer, size: size)
    }

    private static func prefix(of pointer: UnsafePointer<Self>, size: Int) -> Self {
        var value = Self()
        withUnsafeMutableBytes(of: &value) { bytes in
            bytes.copyMemory(from: UnsafeRawBufferPointer(start: pointer, count: size))
        }
        return value
    }
}

extension crudd_failure: SizedStruct {}
extension crudd_host: SizedStruct {}
extension crudd_call: SizedStruct {}
extension crudd_opened: SizedStruct {}
extension crudd_collection_spec: SizedStruct {}
extension crudd_record: SizedStruct {}
extension crudd_read: SizedStruct {}
extension crudd_range: SizedStruct {}
extension crudd_scan: SizedStruct {}
extension crudd_count: SizedStruct {}
extension crudd_mutation: SizedStruct {}
extension crudd_outcome: SizedStruct {}
extension crudd_write: SizedStruct {}
extension crudd_expire: SizedStruct {}
extension crudd_trim: SizedStruct {}
extension crudd_history: SizedStruct {}
extension crudd_taken_history: SizedStruct {}
extension crudd_backup_progress: SizedStruct {}
extension crudd_plugin: SizedStruct {}

extension crudd_bytes {
    /// The bytes of a buffer, which must outlive the value.
    package init(_ buffer: UnsafeBufferPointer<UInt8>) {
        self.init(data: buffer.baseAddress, size: buffer.count)
    }

    /// The bytes of a buffer, which must outlive the value.
    package init(_ buffer: UnsafeRawBufferPointer) {
        self.init(data: buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), size: buffer.count)
    }

    /// The same bytes as a buffer, valid as long as the other side promises.
    package var buffer: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: data, count: size) }
}
