import CRUDFormats
import CRUDModel
package import CRUDPluginABI
package import CRUDPluginCalls
import CRUDPluginHost
import Synchronization

/// A backend's part of the ``RecordCache``: what its entries are filed under, and when they are not valid any more.
///
/// - Each collection that is opened gets a number that no other one had. With the storage, or the collection, it ends,
///   and its entries with it.
/// - When somebody else has written, the *epoch* changes, which is part of the key.
/// - Writes of the backend pass the commit funnel. A commit that has been made in the epoch in which it began replaces
///   the entries of records that are cached, or removes them where it cannot be told what is stored now.
package final class BackendCache: CommitObserver {
    let cache: RecordCache
    private let clock: CommitClock
    private let epoch = Atomic<UInt32>(0)
    /// Whether records are cached, as the configuration says.
    private let isWanted: Atomic<Bool>
    private let state = Mutex(State())

    private struct State {
        /// By the addresses by which the plugin knows them; a child's collection may have several.
        var collections: [UInt: Numbered] = [:]
        var numbers: [BackendCollection.Key: UInt32] = [:]
        /// Counts the commits of a child's storage.
        var counter: CommitCounter?
        /// Asks a plugin in the daemon that loops do not ask themselves; see `data_version` of the contract.
        var version: (@Sendable () -> UInt64)?
        var lastVersion: UInt64 = 0
        /// What the counter must be by the backend's own commits.
        var expectedCount: UInt32 = 0
        var isWriting = false
        /// The epoch in which the write in progress began.
        var epochOfWrite: UInt32 = 0
    }

    private struct Numbered: Sendable {
        let number: UInt32
        /// Whether items are stored as JSON text.
        let keepsText: Bool
    }

    package init(_ cache: RecordCache, clock: CommitClock, isWanted: Bool) {
        self.cache = cache
        self.clock = clock
        self.isWanted = Atomic(isWanted)
    }

    // MARK: Reading

    /// What the records of a collection are filed under now; nil: they are not cached.
    func key(_ collection: BackendCollection) -> CacheKey? {
        let number = collection.cacheNumber
        guard number != 0, isWanted.load(ordering: .relaxed), cache.isEnabled else { return nil }
        return CacheKey(collection: number, epoch: epoch.load(ordering: .acquiring))
    }

    /// Another program has written: neither what is cached nor any snapshot is valid any more.
    ///
    /// Where several loops ask for one number, this is called before the lock is released under which that was
    /// noticed: a loop that then finds nothing new must not find the old epoch either.
    func noteForeignWrite() {
        // First the snapshots, so that nothing old is filled into the new epoch.
        clock.noteForeignWrite()
        epoch.add(1, ordering: .acquiringAndReleasing)
    }

    // MARK: Foreign writes

    /// A storage has been opened or closed that loops do not read themselves.
    ///
    /// - Parameters:
    ///   - counter: of a child's commits; nil where there is none.
    ///   - version: returns the plugin's version; not called by two threads at once, nor after the next call of this.
    func open(_ counter: CommitCounter?, version: (@Sendable () -> UInt64)? = nil) {
        state.withLock { state in
            state.version = version
            state.counter = counter
            state.expectedCount = counter?.value ?? 0
            noteForeignWrite()
        }
    }

    /// Notes what somebody else has written to such a storage.
    ///
    /// - Returns: false where that cannot be told.
    func followForeignWrites() -> Bool {
        state.withLock { state in
            if let version = state.version?() {
                if version != state.lastVersion { noteForeignWrite() }
                state.lastVersion = version
                return version != 0
            }
            guard let count = state.counter?.value else { return false }
            if count == state.expectedCount { return true }
            // Whose the commit is will be known when the write in progress has ended.
            if state.isWriting { return false }
            noteForeignWrite()
            state.expectedCount = count
            return true
        }
    }

    /// Follows another configuration.
    package func cacheRecords(_ isWanted: Bool) {
        guard self.isWanted.exchange(isWanted, ordering: .acquiringAndReleasing) != isWanted, !isWanted else { return }
        let numbers = state.withLock { $0.collections.values.map(\.number) }
        for number in numbers { cache.removeAll(of: number) }
    }

    // MARK: Collections

    /// A collection has been opened; `handle` is what the plugin calls it.
    ///
    /// - Returns: its number.
    func opened(_ collection: BackendCollection, as handle: OpaquePointer) -> UInt32 {
        let address = UInt(bitPattern: handle)
        return state.withLock { state in
            let number = state.numbers[collection.key] ?? cache.makeCollection()
            state.numbers[collection.key] = number
            state.collections[address] = Numbered(number: number, keepsText: collection.codec.keepsText)
            return number
        }
    }

    /// A collection is about to be closed.
    func closes(_ collection: BackendCollection) {
        let address = UInt(bitPattern: collection.handle)
        let number = state.withLock { state in
            state.collections[address] = nil
            return state.numbers.removeValue(forKey: collection.key)
        }
        if let number { cache.removeAll(of: number) }
    }

    // MARK: Writes

    package func willCommit(_ mutations: UnsafeBufferPointer<crudd_mutation>) {
        let epoch = epoch.load(ordering: .acquiring)
        state.withLock { state in
            state.epochOfWrite = epoch
            state.isWriting = true
        }
        forEach(in: mutations) { _, collection, record in
            cache.beginWrite(collection.number, record.id.buffer)
        }
    }

    package func committed(_ commit: borrowing Commit) {
        let epochOfWrite = state.withLock { state in
            state.isWriting = false
            if let counter = state.counter {
                let expected = state.expectedCount &+ (commit.hasChanged ? 1 : 0)
                state.expectedCount = counter.value ?? expected
                if state.expectedCount != expected { noteForeignWrite() }
            }
            return state.epochOfWrite
        }
        let epoch = epoch.load(ordering: .acquiring)
        let isApplied = commit.hasChanged && epoch == epochOfWrite
        forEach(in: commit.mutations) { index, collection, record in
            if commit.isExpiry { cache.beginWrite(collection.number, record.id.buffer) }
            let isKnown =
                isApplied && collection.keepsText && Int(commit.mutations[index].kind) == CRUDD_PUT
                && Int(commit.outcomes[index].status) == CRUDD_OK
            cache.endWrite(
                CacheKey(collection: collection.number, epoch: epoch), record.id.buffer,
                isKnown
                    ? CacheRecord(
                        id: record.id.buffer, item: record.item.buffer, revision: record.revision.buffer,
                        expiresAt: record.expires_at) : nil)
        }
    }

    /// The mutations that change records.
    private func forEach(
        in mutations: UnsafeBufferPointer<crudd_mutation>, _ body: (Int, Numbered, crudd_record) -> Void
    ) {
        var last: (address: UInt, collection: Numbered?) = (0, nil)
        for (index, mutation) in mutations.enumerated() {
            guard Int(mutation.kind) == CRUDD_PUT || Int(mutation.kind) == CRUDD_REMOVE,
                let record = mutation.record?.pointee
            else { continue }
            let address = UInt(bitPattern: mutation.collection)
            if last.address != address { last = (address, state.withLock { $0.collections[address] }) }
            if let collection = last.collection { body(index, collection, record) }
        }
    }
}

extension Commit {
    /// Whether the write has changed anything, as far as that is known.
    fileprivate var hasChanged: Bool {
        guard Int(status) == CRUDD_OK, !isAtomic || outcomes.allSatisfy({ Int($0.status) == CRUDD_OK })
        else { return false }
        return zip(mutations, outcomes).contains { Int($0.kind) != CRUDD_CHECK && Int($1.status) == CRUDD_OK }
    }
}
