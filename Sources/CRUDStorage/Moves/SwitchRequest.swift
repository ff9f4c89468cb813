package import CRUDModel
import CRUDThreads
import Synchronization

/// A request to switch a collection to its new place, which is executed while its requests wait.
package final class SwitchRequest: Sendable {
    package let move: Move
    private let isClaimed = Atomic(false)
    private let outcome = OneShot<Result<Bool, CRUDError>>()

    init(_ move: Move) {
        self.move = move
    }

    /// Begins to execute it; false if it has been withdrawn.
    package func begin() -> Bool {
        isClaimed.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
    }

    /// It has been executed.
    ///
    /// - Parameter outcome: whether the collection is in its new place.
    package func end(_ outcome: Result<Bool, CRUDError>) { self.outcome.resolve(outcome) }

    /// Nobody is to execute it, unless somebody has begun.
    package func withdraw() {
        if begin() { end(.success(false)) }
    }

    func wait() -> Result<Bool, CRUDError> { outcome.wait() }
}
