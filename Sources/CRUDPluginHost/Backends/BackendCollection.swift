import CRUDPluginABI
import Synchronization

/// A collection as a backend knows it.
///
/// The plugin's own handle is made by the backend's worker when the first call needs it, and then stays: the same
/// object serves all event loops.
package final class BackendCollection: Sendable {
    package let name: [UInt8]
    /// `json`, `xml` or `plist`.
    package let format: String
    /// Property paths worth an index.
    package let indexes: [String]

    private let address = Atomic<UInt>(0)
    /// Which child has opened it, above the number by which that child knows it.
    private let childNumber = Atomic<UInt64>(0)

    package init(name: [UInt8], format: String, indexes: [String]) {
        self.name = name
        self.format = format
        self.indexes = indexes
    }

    /// What the plugin calls it; nil until it has been opened.
    var handle: OpaquePointer? {
        get { OpaquePointer(bitPattern: address.load(ordering: .acquiring)) }
        set { address.store(UInt(bitPattern: newValue), ordering: .releasing) }
    }

    /// Whether a reader can be asked for its records.
    package var isOpen: Bool { address.load(ordering: .acquiring) != 0 }

    /// Notes by which number a child knows the collection.
    func set(number: Int, inChild child: UInt32) {
        childNumber.store(UInt64(child) << 32 | UInt64(number), ordering: .releasing)
    }

    /// The number by which a child knows the collection; nil if this child has not opened it.
    func number(inChild child: UInt32) -> Int? {
        let number = childNumber.load(ordering: .acquiring)
        return number >> 32 == UInt64(child) ? Int(number & 0xFFFF_FFFF) : nil
    }

    /// How the plugin is asked to open it.
    func withSpecification(
        flags: UInt32, _ body: (UnsafePointer<crudd_collection_spec>) -> crudd_status
    ) -> crudd_status {
        // The paths' bytes one after the other, and where each stands.
        let bytes = indexes.flatMap(\.utf8)
        let format = Array(format.utf8)
        return bytes.withUnsafeBufferPointer { bytes in
            var start = 0
            let paths = indexes.map { path in
                defer { start += path.utf8.count }
                return crudd_bytes(UnsafeBufferPointer(rebasing: bytes[start..<start + path.utf8.count]))
            }
            return paths.withUnsafeBufferPointer { paths in
                name.withUnsafeBufferPointer { name in
                    format.withUnsafeBufferPointer { format in
                        var specification = crudd_collection_spec()
                        specification.struct_size = UInt32(MemoryLayout<crudd_collection_spec>.size)
                        specification.flags = flags
                        specification.name = crudd_bytes(name)
                        specification.format = crudd_bytes(format)
                        specification.indexes = paths.baseAddress
                        specification.index_count = paths.count
                        return body(&specification)
                    }
                }
            }
        }
    }
}
