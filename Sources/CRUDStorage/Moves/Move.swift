package import CRUDModel
import CRUDThreads
import Logging
import Synchronization

/// A move of one collection to another backend or format.
///
/// **States.** What a move does next depends on its ``State`` alone, which the catalog holds durably: a state is
/// written down before anything is done in it, so that whatever was done when the daemon was killed, the next start
/// knows what lies where.
///
///     (decided) ──▶ planned ──▶ copying ──▶ (switched)
///                      │           │
///                      ▼           ▼
///                 (cancelled) ◀ removing
///
/// - **planned**: nothing has been copied. Records that are in the new place now are not the move's, and end it.
/// - **copying**: what is in the new place are copies, which are made the same as the originals (``CollectionCopy``).
/// - **removing**: the move was cancelled; the copies are being removed.
/// - **switched** is no state of the move but its end: one line of the catalog says that the collection is in its new
///   place, and that originals are in the old one. Before that line the old place counts, behind it the new one, and at
///   that time both hold the same records.
///
/// **The switch.** While records are copied the collection is served from its old place, and what is written there is
/// copied again. When little is left the event loops quiesce the collection: its requests wait in their sessions. The
/// old backend is drained, the rest is copied, the line is written, and the requests resume in the new place.
///
/// **Failures.** A backend that is not available or full suspends the move, which is tried again with growing pauses. A
/// record that the new place cannot hold fails it until it is begun again. Either way the collection stays where it is.
package final class Move: Sendable {
    /// What is remembered durably.
    package enum State: String, Sendable {
        case planned, copying, removing
    }

    /// What an administrator sees.
    package enum Phase: String, Sendable {
        case pending, copying, switching, suspended, failed, removing
    }

    /// How far a move has got.
    package struct Progress: Sendable {
        package let collection: [UInt8]
        package let from: CollectionPlace
        package let to: CollectionPlace
        package fileprivate(set) var copied = 0
        package fileprivate(set) var total = 0
        package fileprivate(set) var phase = Phase.pending
        /// Why it is suspended or has failed.
        package fileprivate(set) var reason: String?
    }

    /// What comes after a step.
    enum Next {
        case step(after: Duration)
        /// It has failed: nothing until it is begun again.
        case nothing
        /// It is over.
        case end
    }

    package let name: [UInt8]
    let source: Backend?
    let target: Backend?
    private let catalog: CollectionCatalog
    private let logger: Logger
    private let requestSwitch: @Sendable (SwitchRequest) -> Void
    private let state: Mutex<Shared>
    // Used by the thread that moves, and by the one that switches while the former waits for it.
    private nonisolated(unsafe) var copy: CollectionCopy?
    // As above.
    private nonisolated(unsafe) var failures = 0

    private struct Shared {
        var progress: Progress
        var isStopped = false
        var request: SwitchRequest?
    }

    private static let shortestPause = Duration.milliseconds(100)
    private static let longestPause = Duration.seconds(5)
    /// How long a collection's requests may wait for what is in flight before the switch is put off.
    private static let drainTimeout = Duration.milliseconds(500)
    private static let vacancyTimeout = Duration.seconds(10)
    private static let removalTimeout = Duration.seconds(60)

    /// - Parameter requestSwitch: has the event loops quiesced and ``switchOver()`` called, on another thread.
    init(
        _ entry: CollectionCatalog.Entry, to destination: CollectionPlace, backends: [Backend],
        _ catalog: CollectionCatalog, _ logger: Logger,
        requestSwitch: @escaping @Sendable (SwitchRequest) -> Void
    ) {
        name = entry.name
        source = backends.first { $0.name == entry.place.backend }
        target = backends.first { $0.name == destination.backend }
        self.catalog = catalog
        self.logger = logger
        self.requestSwitch = requestSwitch
        state = Mutex(Shared(progress: Progress(collection: name, from: entry.place, to: destination)))
    }

    package var progress: Progress { state.withLock { $0.progress } }

    var from: CollectionPlace { progress.from }
    var to: CollectionPlace { progress.to }

    /// Whether a backend is one of its two.
    package func uses(_ backend: Backend) -> Bool { source === backend || target === backend }

    /// How the log calls it.
    var title: String { "the move of collection \(quoted(name)) to \(to)" }

    // MARK: Steps

    /// Does some of what is to be done.
    func advance() -> Next {
        do throws(CRUDError) {
            let next = try step()
            failures = 0
            return next
        } catch {
            return fail(error)
        }
    }

    private func step() throws(CRUDError) -> Next {
        if state.withLock({ $0.isStopped }) { return .end }
        switch catalog.entry(named: name)?.move?.state {
        case nil: return .end
        case .planned:
            try checkVacancy()
            try remember { $0.move?.state = .copying }
            return .step(after: .zero)
        case .copying: return try copySome()
        case .removing:
            show(.removing)
            try removeCopies()
            try remember { $0.move = nil }
            logger.notice("\(title) was cancelled; what was copied has been removed")
            return .end
        }
    }

    /// Looks for records that are in the new place already.
    private func checkVacancy() throws(CRUDError) {
        guard let target else { throw unavailable(to) }
        let known = [from] + (catalog.entry(named: name)?.originals ?? [])
        if let place = try target.recordsInTheWay(of: name, to: to, except: known) {
            throw CRUDError(.recordExists, "there are records of that name in \(place)")
        }
        try target.beginAnew(name, to.format, within: Self.vacancyTimeout)
    }

    private func copySome() throws(CRUDError) -> Next {
        let copy = try validCopy()
        show(.copying)
        let next = try copy.advance()
        state.withLock { shared in
            shared.progress.copied = copy.copied
            shared.progress.total = max(shared.progress.total, copy.copied)
        }
        switch next {
        case .step(let pause): return .step(after: pause)
        case .quiesce: return try awaitSwitch() ? .end : .step(after: Self.shortestPause)
        }
    }

    /// The copy in progress, or one that begins.
    private func validCopy() throws(CRUDError) -> CollectionCopy {
        if let copy, copy.isValid { return copy }
        copy = nil
        guard let source else { throw unavailable(from) }
        guard let target else { throw unavailable(to) }
        let copy = CollectionCopy(name, from: (source, from), to: (target, to))
        let total = try copy.begin()
        state.withLock { $0.progress.total = total }
        if self.failures == 0 { logger.notice("\(title) from \(from): \(total) records are to be copied") }
        self.copy = copy
        return copy
    }

    private func removeCopies() throws(CRUDError) {
        copy = nil
        guard let target else { throw unavailable(to) }
        guard let entry = catalog.entry(named: name) else { return }
        let isShared = ([entry.place] + entry.originals).contains { $0.backend == to.backend }
        _ = try target.removeRecords(of: name, in: to.format, isShared: isShared, within: Self.removalTimeout)
    }

    // MARK: The switch

    /// Asks for the switch, and waits until it has been made or put off.
    ///
    /// - Returns: whether the collection is in its new place.
    private func awaitSwitch() throws(CRUDError) -> Bool {
        let request = SwitchRequest(self)
        let isStopped = state.withLock { shared in
            if !shared.isStopped { shared.request = request }
            return shared.isStopped
        }
        if isStopped { return false }
        show(.switching)
        requestSwitch(request)
        let outcome = request.wait()
        state.withLock { $0.request = nil }
        return try outcome.get()
    }

    /// Copies what is left and makes the new place the collection's own; called while its requests wait.
    ///
    /// - Returns: false where that has to be put off.
    /// - Throws: why it is not possible now. The collection stays where it is.
    package func switchOver() throws(CRUDError) -> Bool {
        guard let copy, copy.isValid, try copy.finish(within: Self.drainTimeout) else { return false }
        let (from, to) = (from, to)
        try remember { entry in
            entry.place = to
            entry.originals.append(from)
            entry.move = nil
        }
        logger.notice(
            "collection \(quoted(name)) has moved from \(from) to \(to); the originals stay until dropped")
        return true
    }

    // MARK: Stopping

    /// Ends after the step in progress, whatever the state.
    func stop() {
        let request = state.withLock { shared in
            shared.isStopped = true
            return shared.request
        }
        request?.withdraw()
    }

    // MARK: Outcomes

    /// Changes the catalog, durably.
    private func remember(_ change: (inout CollectionCatalog.Entry) -> Void) throws(CRUDError) {
        guard !state.withLock({ $0.isStopped }) else { throw CRUDError(.unavailable, "the move was stopped") }
        do throws(SystemError) {
            try catalog.update(name, change)
        } catch {
            throw CRUDError(.noSpace, "\(error)")
        }
    }

    private func unavailable(_ place: CollectionPlace) -> CRUDError {
        CRUDError(.unavailable, "backend \(place.backend) is not among those of the configuration")
    }

    private func show(_ phase: Phase) {
        state.withLock { shared in
            shared.progress.phase = phase
            shared.progress.reason = nil
        }
    }

    private func fail(_ error: CRUDError) -> Next {
        let isFinal = [.unsupported, .corrupt, .limitExceeded, .recordExists].contains(error.code)
        let phase = isFinal ? Phase.failed : .suspended
        let isNews = state.withLock { shared in
            let isNews = shared.progress.reason != error.message && !shared.isStopped
            shared.progress.phase = phase
            shared.progress.reason = error.message
            return isNews
        }
        if isNews { logger.error("\(title) \(isFinal ? "has failed" : "is suspended"): \(error.message)") }
        failures += 1
        if isFinal {
            copy = nil
            return .nothing
        }
        return .step(after: min(Self.shortestPause * (1 << min(failures - 1, 10)), Self.longestPause))
    }
}
