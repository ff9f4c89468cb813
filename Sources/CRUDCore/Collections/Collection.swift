package import CRUDConfiguration
package import CRUDPluginHost

/// A collection as one event loop knows it: where it lives, in which format, and how the loop reads it.
package final class Collection {
    package let name: [UInt8]
    package let rule: CollectionRule
    package let backend: Backend
    /// The backend's place among those of the daemon.
    package let backendIndex: Int
    package let stored: BackendCollection
    package let codec: Codec
    /// How many requests for it this loop has under way; while there are any it is not forgotten.
    package var requestsUnderWay = 0

    init(name: [UInt8], rule: CollectionRule, backend: Backend, backendIndex: Int) {
        self.name = name
        self.rule = rule
        self.backend = backend
        self.backendIndex = backendIndex
        codec = Codec(rule.format)
        stored = BackendCollection(name: name, format: rule.format.rawValue, indexes: rule.indexes)
    }
}
