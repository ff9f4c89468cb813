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
    /// How many requests for it this loop has under way; while there are any it is not forgotten.
    package var requestsUnderWay = 0
    /// A number that no other collection of this loop has; permissions are kept by it.
    package let serial: Int

    init(name: [UInt8], rule: CollectionRule, backend: Backend, backendIndex: Int, serial: Int) {
        self.name = name
        self.rule = rule
        self.backend = backend
        self.backendIndex = backendIndex
        self.serial = serial
        stored = BackendCollection(name: name, format: rule.format.rawValue, indexes: rule.indexes)
    }
}
