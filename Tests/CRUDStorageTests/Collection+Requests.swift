import CRUDModel
import CRUDPluginHost

@testable import CRUDStorage

/// Requests of a test, made as handlers make them.
extension Collection {
    /// A collection of the test's own that lives in the backend of `client`.
    convenience init(_ name: String = "c", of client: BackendClient, indexes: [String] = []) throws {
        let rule = try CollectionRule(name, indexes: indexes)
        self.init(name: Array(name.utf8), rule: rule, client: client)
        stored.layout = CollectionLayout(rule)
    }

    func read(_ ids: [String], maximumBytes: Int = .max, for completion: TestCompletion) {
        let batch = store.pendingReads(for: stored)
        let places = ids.map { batch.store(Array($0.utf8).span) }
        store.submit(Read(.records(places), in: stored, maximumBytes: maximumBytes), for: completion)
    }

    func count(prefix: String = "", for completion: TestCompletion) {
        let prefix = store.pendingReads(for: stored).store(Array(prefix.utf8).span)
        store.submit(Read(.count(prefix: prefix), in: stored), for: completion)
    }

    func write(_ changes: Change..., for completion: TestCompletion) {
        let batch = client.pendingMutations(of: 0, transforms: false)
        client.append(changes.map { batch.mutation($0, in: stored) }, to: batch, for: completion)
    }

    func write(atomic changes: Change..., for completion: TestCompletion) {
        let batch = MutationBatch(isAtomic: true, deliver: client.deliver)
        client.submit(atomic: batch, changes.map { batch.mutation($0, in: stored) }, for: completion)
    }
}
