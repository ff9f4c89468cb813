import CRUDConfiguration
import CRUDModel
import CRUDStorage
import CRUDWire
import Synchronization

/// What users with quotas store, and who has reached one.
///
/// How many collections a user owns is exact: the catalog counts them (``Catalog``). What is in them is measured by a
/// thread of its own (``QuotaMeasuring``), so that neither reads nor writes count anything: a write asks one atomic
/// flag as long as no user has reached a quota.
final class Quotas: Sendable {
    /// What the collections of a user hold.
    struct Use: Sendable, Equatable {
        var records = 0
        /// Of ids and items as they are stored.
        var bytes = 0
    }

    /// A user who owns collections and has quotas.
    struct Owner: Sendable {
        let uid: UInt32
        let limits: UserLimits
        /// Nil until it has been measured, and where neither records nor bytes are limited.
        var use: Use?
        /// The names of its collections.
        var collections: [[UInt8]]

        /// The quota that it has reached; nil: none.
        fileprivate var reached: (name: String, maximum: Int)? {
            guard let use else { return nil }
            if let maximum = limits.bytes, use.bytes >= maximum { return ("bytes", maximum) }
            if let maximum = limits.records, use.records >= maximum { return ("records", maximum) }
            return nil
        }
    }

    private struct State {
        var owners: [UInt32: Owner] = [:]
        /// The owners that have reached a quota, by the names of their collections.
        var reached: [[UInt8]: UInt32] = [:]
    }

    private let state = Mutex(State())
    private let isReached = Atomic(false)

    /// All of them, by user.
    var owners: [Owner] { state.withLock { $0.owners.values.sorted { $0.uid < $1.uid } } }

    /// What the collections of a user hold; nil where that is not measured.
    func use(of uid: UInt32) -> Use? { state.withLock { $0.owners[uid]?.use } }

    /// Notes what has been found out about a user.
    func note(_ owner: Owner) {
        state.withLock { state in
            forget(owner.uid, in: &state)
            state.owners[owner.uid] = owner
            if owner.reached != nil { for name in owner.collections { state.reached[name] = owner.uid } }
            isReached.store(!state.reached.isEmpty, ordering: .relaxed)
        }
    }

    /// Forgets all users but these.
    func keep(_ users: Set<UInt32>) {
        state.withLock { state in
            for uid in state.owners.keys where !users.contains(uid) { forget(uid, in: &state) }
            isReached.store(!state.reached.isEmpty, ordering: .relaxed)
        }
    }

    private func forget(_ uid: UInt32, in state: inout State) {
        guard let former = state.owners.removeValue(forKey: uid) else { return }
        for name in former.collections where state.reached[name] == uid { state.reached[name] = nil }
    }

    /// Why an operation must not be executed, which may make the collection hold more; nil: it may.
    func refusal(of operation: Operation, in collection: Collection) -> CRUDError? {
        guard isReached.load(ordering: .relaxed), operation.storesItem else { return nil }
        return state.withLock { state in
            guard let owner = state.reached[collection.name].flatMap({ state.owners[$0] }),
                let reached = owner.reached, reached.name == "bytes" || operation.canCreate
            else { return nil }
            return owner.refusal(reached)
        }
    }

    /// Why a user must not own another collection, whose present ones hold too much; nil: it may.
    func refusal(ofCollectionBy creator: CollectionCreator?) -> CRUDError? {
        guard isReached.load(ordering: .relaxed), let creator else { return nil }
        return state.withLock { state in
            guard let owner = state.owners[creator.uid], let reached = owner.reached else { return nil }
            return owner.refusal(reached)
        }
    }
}

extension Quotas.Owner {
    fileprivate func refusal(_ reached: (name: String, maximum: Int)) -> CRUDError {
        let held = reached.name == "bytes" ? use?.bytes : use?.records
        return .limit(
            reached.name, reached.maximum,
            "the collections of user \(uid) hold \(held ?? 0) \(reached.name), and may hold \(reached.maximum) by the "
                + "`limits` of its access rule; delete some, or have the limit raised")
    }
}

extension Operation {
    /// Whether it stores an item.
    fileprivate var storesItem: Bool {
        switch kind {
        case .create, .update, .upsert, .patch: true
        case .delete, .touch, .check: false
        }
    }

    /// Whether it may create a record.
    fileprivate var canCreate: Bool {
        switch kind {
        case .create, .upsert: true
        case .patch: upserts
        case .update, .delete, .touch, .check: false
        }
    }
}
