package import CRUDConfiguration
package import CRUDPluginHost

/// A collection as one event loop knows it: where it lives, in which format, and how the loop reads it.
///
/// A reload may let it live elsewhere; it stays the same object, by which sessions keep the order of its requests.
package final class Collection {
    package let name: [UInt8]
    // Not checked for exclusive access at run time, which a profile of reads shows: one thread uses it, and nothing that is
    // called during an access comes back to it.
    @exclusivity(unchecked) package private(set) var rule: CollectionRule
    // As above.
    @exclusivity(unchecked) package private(set) var backend: Backend
    /// The backend's place among those of the daemon.
    // As above.
    @exclusivity(unchecked) package private(set) var backendIndex: Int
    // As above.
    @exclusivity(unchecked) package private(set) var stored: BackendCollection
    // As above.
    @exclusivity(unchecked) package private(set) var codec: Codec
    /// Whether its requests have to wait because a reload is exchanging what it lives in.
    // As above.
    @exclusivity(unchecked) package internal(set) var isHeld = false
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

    /// Goes over to another rule and the backends of another configuration.
    func move(to rule: CollectionRule, backend: Backend, backendIndex: Int) {
        let isSame = backend === self.backend && rule.format == self.rule.format && rule.indexes == self.rule.indexes
        if !isSame { stored = BackendCollection(name: name, format: rule.format.rawValue, indexes: rule.indexes) }
        self.rule = rule
        self.backend = backend
        self.backendIndex = backendIndex
        codec = Codec(rule.format)
    }
}
