import CRUDModel
import CRUDPluginABI
import CRUDPluginHost

// A probe is a look at a collection that is not an opening: indexes, history and everything else stay as they are, no
// observer, keeper or index builder learns of it, and whoever opens the collection later finds it as it was.

extension OpenStorage {
    /// Looks at a collection.
    ///
    /// - Returns: what reads and removals may use, by id; it is closed with the storage and when the collection is
    ///   dropped. Nil: there is no such collection.
    func probe(_ name: [UInt8], _ format: CollectionRule.Format) throws(CRUDError) -> BackendCollection? {
        let collection = BackendCollection(name: name, format: format)
        var handle: OpaquePointer?
        let call = context.begin()
        let status = collection.withSpecification(flags: UInt32(CRUDD_OPEN_AS_IT_IS), indexes: []) {
            table.pointee.open_collection(opened.storage, call, $0, &handle, failure.pointer)
        }
        if Int(status) == CRUDD_NOT_FOUND {
            _ = failure.take(status: status)
            return nil
        }
        guard Int(status) == CRUDD_OK, let handle else {
            throw failures.report(failure.take(status: status), during: "open_collection")
        }
        if let child = opened.child { collection.set(number: child.number(of: handle), inChild: child.identity) }
        collection.handle = handle
        probes.add(collection)
        return collection
    }
}

/// The probes that are in use.
struct CollectionProbes {
    private var all: [Probe] = []

    private struct Probe {
        weak var collection: BackendCollection?
    }

    mutating func add(_ collection: BackendCollection) {
        all.removeAll { $0.collection == nil }
        all.append(Probe(collection: collection))
    }

    /// Closes those of a collection, or all.
    func close(where isToClose: (BackendCollection) -> Bool = { _ in true }) {
        for case .some(let collection) in all.map(\.collection) where isToClose(collection) { collection.close() }
    }
}
