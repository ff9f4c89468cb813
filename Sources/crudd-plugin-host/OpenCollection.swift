import CRUDPluginABI

/// A collection that the plugin has opened.
final class OpenCollection: @unchecked Sendable {
    // @unchecked: an address; the contract says which calls may be made beside each other, and the channels keep to it.
    let handle: OpaquePointer
    let name: [UInt8]
    /// `json`, `xml` or `plist`.
    let format: String
    /// The paths of its indexes; index n is the one at position n.
    let indexPaths: [String]

    init(handle: OpaquePointer, name: String, format: String, indexPaths: [String]) {
        self.handle = handle
        self.name = Array(name.utf8)
        self.format = format
        self.indexPaths = indexPaths
    }
}
