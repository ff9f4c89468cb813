package import CRUDPluginABI
package import CRUDPluginCalls
import CRUDPluginHost
import Synchronization

/// A write that a plugin has returned from.
package struct Commit: ~Copyable {
    /// The mutations in the order in which they took effect; their bytes are gone when the observer returns.
    package let mutations: UnsafeBufferPointer<crudd_mutation>
    /// The outcome of each; they say nothing unless ``status`` is CRUDD_OK.
    package let outcomes: UnsafeBufferPointer<crudd_outcome>
    /// The status of the call. With CRUDD_OUTCOME_UNKNOWN some mutations may have been applied, with any other but
    /// CRUDD_OK none was.
    package let status: crudd_status
    /// Whether nothing was applied unless all outcomes are CRUDD_OK.
    package let isAtomic: Bool
    /// Whether the mutations are removals of records that had expired, which were not known before the call.
    package var isExpiry = false
}

/// Sees every write of a backend. It is called on the writer's thread and must not block.
package protocol CommitObserver: Sendable {
    /// The plugin is about to be asked: from now on readers may see the write.
    func willCommit(_ mutations: UnsafeBufferPointer<crudd_mutation>)
    /// The plugin has returned, no client has been told yet. Called after a failure too, for a write may have been
    /// applied all the same.
    func committed(_ commit: borrowing Commit)
}

/// The one place that every write of a backend passes, in commit order, between the plugin's return and the clients'
/// replies. What has to follow the records is an observer of it, and observers know nothing of each other.
struct CommitFunnel {
    private let observers: [any CommitObserver]

    init(_ observers: [any CommitObserver]) {
        self.observers = observers
    }

    /// Makes the plugin's call.
    func write(
        _ mutations: UnsafeBufferPointer<crudd_mutation>, _ outcomes: UnsafeBufferPointer<crudd_outcome>,
        isAtomic: Bool = false, _ call: () -> crudd_status
    ) -> crudd_status {
        for observer in observers { observer.willCommit(mutations) }
        let status = call()
        let commit = Commit(mutations: mutations, outcomes: outcomes, status: status, isAtomic: isAtomic)
        for observer in observers { observer.committed(commit) }
        return status
    }

    /// Makes a call by which the plugin removes records that have expired, or nothing that a client sees.
    ///
    /// - Parameter call: returns the removals that have taken effect.
    func maintain(_ call: () -> Removals) {
        let none = UnsafeBufferPointer<crudd_mutation>(start: nil, count: 0)
        for observer in observers { observer.willCommit(none) }
        call().withMutations { mutations, outcomes in
            let commit = Commit(
                mutations: mutations, outcomes: outcomes, status: crudd_status(CRUDD_OK), isAtomic: false,
                isExpiry: true)
            for observer in observers { observer.committed(commit) }
        }
    }
}

extension CommitClock: CommitObserver {
    package func willCommit(_ mutations: UnsafeBufferPointer<crudd_mutation>) { begin() }
    package func committed(_ commit: borrowing Commit) { end() }
}
