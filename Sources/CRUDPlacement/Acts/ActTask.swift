import CRUDModel
import CRUDStorage
import Logging
import Synchronization

/// One act of one collection, executed in steps by the worker of the backend in which it changes something.
///
/// A step is repeated until the act is certain, whatever it has done before: that a collection is not there is a
/// successful removal, and a copy that was cut short is compared. A temporary failure suspends the act, which is tried
/// again after a growing pause; a final one ends it until an administrator or a start begins again.
final class ActTask: Sendable {
    let name: [UInt8]
    let act: Placement.Act
    private let state: Mutex<ActProgress>
    // Used by the worker's thread, and by the executor's while the former waits for a switch.
    private nonisolated(unsafe) var copying: Copying?
    // As above.
    private nonisolated(unsafe) var failures = 0

    private static let shortestPause = Duration.milliseconds(100)
    private static let longestPause = Duration.seconds(5)

    /// What comes after a step.
    enum Next {
        case step(after: Duration)
        /// It is done, and the placement has changed.
        case done
        /// It has failed: nothing until it is begun again.
        case nothing
    }

    init(_ name: [UInt8], _ act: Placement.Act) {
        self.name = name
        self.act = act
        state = Mutex(ActProgress(name, act))
    }

    var progress: ActProgress { state.withLock { $0 } }

    /// How the log calls it.
    private var title: String {
        switch act {
        case .remove(let place): "the removal of collection \(quoted(name)) from \(place)"
        case .probe(let place), .copy(_, to: let place): "the move of collection \(quoted(name)) to \(place)"
        case .beginFeed(let place): "the new feed of collection \(quoted(name)) in \(place)"
        }
    }

    // MARK: Steps

    /// Executes a step, on the worker's thread.
    func advance(_ control: PlacementControl) -> Next {
        let entry = control.catalog.entry(name)
        // Whatever it is to be instead has a task of its own.
        guard entry.placement.acts.contains(act) else { return .done }
        do throws(CRUDError) {
            let next = try step(entry, control)
            failures = 0
            return next
        } catch {
            return fail(error, control)
        }
    }

    private func step(_ entry: Catalog.Entry, _ control: PlacementControl) throws(CRUDError) -> Next {
        switch act {
        case .remove(let place):
            show(.removing)
            guard let backend = control.backend(place.backend) else { throw Self.missing(place) }
            let isShared = entry.placement.kept.contains { $0.backend == place.backend }
            // What is not dropped but elsewhere must not become less for those that began to read it here.
            if entry.placement.authority != nil, backend.isBeingRead(name, in: place.format, isShared: isShared) {
                return .step(after: Self.shortestPause)
            }
            let isDone = try backend.remove(name, in: place.format, isShared: isShared, within: .seconds(60))
            guard isDone else { return .step(after: .zero) }
            return try control.commit(.removed(place), of: name, from: entry) { "\(title) is done" }
        case .probe(let place):
            guard let backend = control.backend(place.backend) else { throw Self.missing(place) }
            let known = entry.placement.kept + entry.placement.obsolete
            if let obstacle = try backend.recordsInTheWay(of: name, to: place, except: known) {
                throw CRUDError(.recordExists, "there are records of that name in \(obstacle)")
            }
            try backend.beginAnew(name, place.format, within: .seconds(10))
            return try control.commit(.vacant(place), of: name, from: entry) { nil }
        case .copy(let source, to: let target):
            return try copy(from: source, to: target, entry, control)
        case .beginFeed(let place):
            guard let backend = control.backend(place.backend) else { throw Self.missing(place) }
            try backend.beginAnew(name, place.format, within: .seconds(10))
            let next = try control.commit(.begunFeed(place), of: name, from: entry) {
                failures == 0 ? nil : "\(title) has begun"
            }
            control.keep(name)
            return next
        }
    }

    private func copy(
        from source: CollectionPlace, to target: CollectionPlace, _ entry: Catalog.Entry, _ control: PlacementControl
    ) throws(CRUDError) -> Next {
        let copying = try validCopying(from: source, to: target, control)
        show(.copying)
        let next = try copying.copy.advance()
        state.withLock { progress in
            progress.copied = copying.copy.copied
            progress.total = max(progress.total, copying.copy.copied)
            progress.reason = copying.copy.obstacle
        }
        switch next {
        case .step(let pause): return .step(after: pause)
        case .quiesce:
            show(.switching)
            let isSwitched = try control.switchOver(
                Switch(name, from: source, to: target, entry, copying.copy, control))
            return isSwitched ? .done : .step(after: Self.shortestPause)
        }
    }

    /// The copy in progress, or one that begins.
    private func validCopying(
        from source: CollectionPlace, to target: CollectionPlace, _ control: PlacementControl
    ) throws(CRUDError) -> Copying {
        guard let from = control.backend(source.backend) else { throw Self.missing(source) }
        guard let to = control.backend(target.backend) else { throw Self.missing(target) }
        if let copying, copying.source === from, copying.target === to, copying.copy.isValid { return copying }
        copying = nil
        let copy = CollectionCopy(name, from: (from, source), to: (to, target))
        let total = try copy.begin()
        state.withLock { $0.total = total }
        if failures == 0 { control.logger.notice("\(title) from \(source): \(total) records are to be copied") }
        let copying = Copying(source: from, target: to, copy: copy)
        self.copying = copying
        return copying
    }

    /// A copy with the backends for which it is valid.
    private struct Copying {
        let source: Backend
        let target: Backend
        let copy: CollectionCopy
    }

    private static func missing(_ place: CollectionPlace) -> CRUDError {
        CRUDError(.unavailable, "backend \(place.backend) is not among those of the configuration")
    }

    // MARK: Outcomes

    private func show(_ phase: ActProgress.Phase) {
        state.withLock { progress in
            if progress.phase != phase { progress.reason = nil }
            progress.phase = phase
        }
    }

    private func fail(_ error: CRUDError, _ control: PlacementControl) -> Next {
        // A feed is tried again whatever the reason, as its collection is not served before.
        let isFinal = !act.isOfFeed && [.unsupported, .corrupt, .limitExceeded, .recordExists].contains(error.code)
        let phase = isFinal ? ActProgress.Phase.failed : .suspended
        let isNews = state.withLock { progress in
            let isNews = progress.reason != error.message
            progress.phase = phase
            progress.reason = error.message
            return isNews
        }
        if isNews { control.logger.error("\(title) \(isFinal ? "has failed" : "is suspended"): \(error.message)") }
        failures += 1
        if isFinal {
            copying = nil
            return .nothing
        }
        return .step(after: min(Self.shortestPause * (1 << min(failures - 1, 10)), Self.longestPause))
    }
}

extension Placement.Act {
    fileprivate var isOfFeed: Bool { if case .beginFeed = self { true } else { false } }
}
