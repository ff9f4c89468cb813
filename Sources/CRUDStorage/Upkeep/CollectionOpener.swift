import CRUDModel
import CRUDThreads

/// Opens the collections that are to be looked after and that nobody has used yet, one after the other, and tells the
/// plugin layouts that have changed.
final class CollectionOpener: BackgroundWork {
    private let storage: OpenStorage
    private let kept: KeptCollections
    /// Of the list that has been taken; nil: none has been.
    private var version: Int?
    private var pending: [BackendCollection] = []
    private var nextStep = MonotonicTime.now

    private static let stepDuration = Duration.milliseconds(2)

    init(_ storage: OpenStorage, _ kept: KeptCollections) {
        self.storage = storage
        self.kept = kept
    }

    var timeUntilDue: Duration? {
        followList()
        return pending.isEmpty ? nil : max(.zero, nextStep - MonotonicTime.now)
    }

    private func followList() {
        let current = kept.version
        guard current != version else { return }
        switch kept.takeChange(isFirst: version == nil) {
        case .all(let collections): pending = collections
        case .added(let collections): pending += collections
        }
        version = current
    }

    func advanceIfDue() {
        followList()
        guard !pending.isEmpty, nextStep <= MonotonicTime.now else { return }
        let begin = MonotonicTime.now
        while let collection = pending.last, MonotonicTime.now - begin < Self.stepDuration {
            do throws(CRUDError) {
                if !collection.isCurrent, kept.contains(collection) { try storage.open(collection) }
                pending.removeLast()
            } catch {
                // It has been logged. The others must not wait for this one.
                pending.removeLast()
                pending.insert(collection, at: 0)
                nextStep = MonotonicTime.now + .seconds(1)
                return
            }
        }
        nextStep = MonotonicTime.now + (MonotonicTime.now - begin)
    }
}
