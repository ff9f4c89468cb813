package import CRUDModel
package import CRUDPluginABI
import CRUDPluginHost

/// A collection that a plugin may have open.
package protocol PluginCollection: AnyObject {
    /// What the plugin calls it; nil while it has not been opened.
    var handle: OpaquePointer? { get }
}

extension crudd_collection_spec {
    /// Describes a collection that a plugin is to open.
    ///
    /// - Parameters:
    ///   - flags: `CRUDD_OPEN_…`.
    ///   - body: receives the description, which is valid until it returns.
    package static func with(
        name: [UInt8], format: CollectionRule.Format, flags: UInt32, indexes: [PropertyPath],
        _ body: (UnsafePointer<crudd_collection_spec>) -> crudd_status
    ) -> crudd_status {
        // All texts one after the other, so that their addresses hold together.
        let paths = indexes.map { Array($0.text.utf8) }
        let texts = [name, Array(format.rawValue.utf8)] + paths
        return texts.flatMap(\.self).withUnsafeBufferPointer { bytes in
            var end = 0
            let places = texts.map { text in
                defer { end += text.count }
                return crudd_bytes(UnsafeBufferPointer(rebasing: bytes[end..<end + text.count]))
            }
            return places.withUnsafeBufferPointer { places in
                var specification = crudd_collection_spec.sized()
                specification.flags = flags
                specification.name = places[0]
                specification.format = places[1]
                specification.indexes = UnsafeBufferPointer(rebasing: places[2...]).baseAddress
                specification.index_count = paths.count
                return body(&specification)
            }
        }
    }
}
