package import CRUDFormats
import CRUDJSON
package import CRUDModel
import CRUDPluginHost

/// A collection as one event loop knows it: where it lives, in which format, and how the loop reads and writes it.
///
/// A reload may move it elsewhere; it stays the same object, by which sessions keep the order of its requests.
package final class Collection {
    package let name: [UInt8]

    /// What every request touches. Not checked for exclusive access at run time, which a profile of reads shows: one
    /// thread uses it, and nothing that is called during an access comes back to it.
    private struct State {
        var rule: CollectionRule
        var client: BackendClient
        var store: Store
        var stored: BackendCollection
        var isQuiesced = false
        var closedReason: String?
        var isMapped = true
    }

    @exclusivity(unchecked) private var state: State
    /// How many requests for it this loop has executed.
    // As above.
    @exclusivity(unchecked) private(set) var requestCount: UInt64 = 0
    /// Makes index keys by a layout of the collection.
    private var keys = RecordKeys([])
    /// The number of that layout; 0: of none yet.
    private var layout: UInt32 = 0
    private var hasIndexes = false
    /// How many requests for it this loop has in flight; while there are any it is not forgotten.
    // As above.
    @exclusivity(unchecked) package var requestsInFlight = 0

    init(name: [UInt8], rule: CollectionRule, client: BackendClient) {
        self.name = name
        state = State(
            rule: rule, client: client, store: client.store,
            stored: client.backend.collection(name, rule.format))
    }

    package var rule: CollectionRule { state.rule }
    /// This loop's access to the backend that it lives in.
    package var client: BackendClient { state.client }
    package var backend: Backend { state.client.backend }
    /// What its records are cached under; nil: they are not.
    package var cacheKey: CacheKey? { state.store.cacheKey(for: state.stored) }
    /// How this loop reads it.
    package var store: Store { state.store }
    /// The collection as its backend knows it.
    package var stored: BackendCollection { state.stored }
    package var codec: Codec { state.stored.codec }

    /// Whether its requests have to wait because a reload is exchanging what it lives in.
    package internal(set) var isQuiesced: Bool {
        get { state.isQuiesced }
        set { state.isQuiesced = newValue }
    }

    /// Why its requests are refused; nil: they are not.
    package internal(set) var closedReason: String? {
        get { state.closedReason }
        set { state.closedReason = newValue }
    }

    /// Whether a rule of the configuration maps it to a backend.
    var isMapped: Bool {
        get { state.isMapped }
        set { state.isMapped = newValue }
    }

    /// Why no request of it may be executed now; nil: they may.
    package var refusal: CRUDError? {
        state.isMapped ? state.closedReason.map { CRUDError(.unavailable, $0) } : .unmapped
    }

    /// Counts a request that is executed.
    package func countRequest() { requestCount &+= 1 }

    /// Follows another rule and the backends of another configuration. This is the one way in which a collection gets
    /// another place: what is known of its records by ``stored`` says nothing of those in the new one.
    func move(to rule: CollectionRule, client: BackendClient) {
        state.stored = client.backend.collection(name, rule.format)
        state.rule = rule
        state.client = client
        state.store = client.store
    }

    /// Copies the index keys of an item into the batch that is going to store it.
    ///
    /// - Parameter item: JSON text that has been found valid.
    /// - Returns: what ``Mutation/keys`` is to be.
    package func storeKeys(of item: Span<UInt8>, in batch: MutationBatch) -> StoredKeys {
        // Numbers tell the layouts of all collections apart.
        if layout != state.stored.layoutNumber { followLayout() }
        guard hasIndexes, let made = keys.keys(of: item) else { return StoredKeys() }
        return batch.store(IndexKeys(made, layout: layout))
    }

    private func followLayout() {
        let numbered = state.stored.numberedLayout
        keys = RecordKeys(numbered.layout.indexPaths)
        hasIndexes = !numbered.layout.indexPaths.isEmpty
        layout = numbered.number
    }
}

extension CRUDError {
    package static let unmapped = CRUDError(
        .collectionNotFound, "no rule of the configuration maps this collection")
}
