import CRUDModel
import CRUDThreads

/// Opens the collections that are to be looked after and that nobody has used yet, one after the other, and tells the
/// plugin layouts that have changed.
final class CollectionOpener: BackgroundWork {
    private let storage: OpenStorage
    private let kept: KeptCollections
    private var version = 0
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
        guard kept.version != version else { return }
        version = kept.version
        pending = kept.all.reversed()
    }

    func advanceIfDue() {
        followList()
        guard !pending.isEmpty, nextStep <= MonotonicTime.now else { return }
        let begin = MonotonicTime.now
        while let collection = pending.last, MonotonicTime.now - begin < Self.stepDuration {
            do throws(CRUDError) {
                if !collection.isCurrent { try storage.open(collection) }
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
