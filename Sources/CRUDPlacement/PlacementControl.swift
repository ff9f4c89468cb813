package import CRUDModel
package import CRUDStorage
package import CRUDThreads
package import Logging
import Synchronization

/// The control plane: the catalog, the executor of changes, and the workers that execute acts.
package final class PlacementControl: Sendable {
    package let catalog: Catalog
    package let executor = PlacementExecutor()
    package let logger: Logger
    private let state = Mutex(State())
    /// Held while a change is planned and recorded: the ends of acts, which come all the time while many collections
    /// are moved, wait meanwhile, as each of them would make the plan stale.
    private let planning = Mutex(())

    private struct State {
        var backends: [String: Backend] = [:]
        var rules = CollectionRules([])
        var loops: (any ServingLoops)?
        var workers: [String: PlacementWorker] = [:]
        /// Drops that are recorded and wait for the removals a while.
        var drops: [RecordedDrop] = []
        var doubtSince: ContinuousClock.Instant?
    }

    private struct RecordedDrop {
        let request: DropRequest
        let wasThere: Bool
        let deadline: ContinuousClock.Instant
    }

    /// How long the reply to a drop waits for what is removed by acts.
    private static let replyTimeout = Duration.seconds(2)
    private static let doubtPause = Duration.seconds(1)

    package init(_ catalog: Catalog, logger: Logger) {
        self.catalog = catalog
        self.logger = logger
    }

    // MARK: What is in force

    /// Serves from now on, with these loops.
    package func start(_ loops: any ServingLoops) throws(ThreadFailure) {
        state.withLock { $0.loops = loops }
        try executor.start { [weak self] in self?.tick() ?? false }
    }

    /// Ends the workers after their steps in progress.
    package func stop() {
        for worker in state.withLock({ Array($0.workers.values) }) { worker.stop() }
    }

    /// Follows the backends and rules of a configuration.
    ///
    /// - Parameter retriesFailed: whether acts that have failed begin again.
    package func follow(
        _ backends: [Backend], _ rules: CollectionRules, maximumByPattern: Int, retriesFailed: Bool = false
    ) {
        let former = state.withLock { state in
            defer {
                state.backends = Dictionary(uniqueKeysWithValues: backends.map { ($0.name, $0) })
                state.rules = rules
            }
            return (backends: state.backends, rules: state.rules)
        }
        catalog.follow(rules, maximumByPattern: maximumByPattern)
        survey(backends, former, rules)
        for name in catalog.restless { follow(name, retriesFailed: retriesFailed) }
    }

    /// Has the backends look for collections that the catalog does not know: new ones for all, others for those whose
    /// rules have changed.
    private func survey(
        _ backends: [Backend], _ former: (backends: [String: Backend], rules: CollectionRules), _ rules: CollectionRules
    ) {
        let change = RuleChange(from: former.rules, to: rules)
        for backend in backends {
            if former.backends[backend.name] !== backend || !change.globs.isEmpty {
                backend.survey()
            } else if !change.names.isEmpty {
                backend.survey(change.names)
            }
        }
    }

    /// Waits until it is known what is in the storages that rules name which are about to change, but no longer.
    ///
    /// - Returns: the names of the backends from which the change may take collections that are not known yet, sorted.
    package func awaitSurveys(
        of rules: CollectionRules, before next: CollectionRules, within timeout: Duration
    ) -> [String] {
        let change = RuleChange(from: rules, to: next)
        let concerned = Set(rules.rules.filter { change.concerns($0.pattern) }.map(\.backend))
        let backends = state.withLock { $0.backends }
        let deadline = ContinuousClock.now + timeout
        for name in concerned { backends[name]?.awaitSurvey(within: deadline - .now) }
        return rules.backends(losingNamesBy: next).compactMap { backends[$0] }.filter(isUnsurveyed).map(\.name).sorted()
    }

    /// Waits until it is known what is in the storages that have not been surveyed since the catalog knows them, but no
    /// longer.
    ///
    /// - Returns: the names of the backends of which it is not known then, sorted.
    package func awaitFirstSurveys(within timeout: Duration) -> [String] {
        let deadline = ContinuousClock.now + timeout
        let unsurveyed = state.withLock { $0.backends }.values.filter(isUnsurveyed)
        for backend in unsurveyed { backend.awaitSurvey(within: deadline - .now) }
        return unsurveyed.filter(isUnsurveyed).map(\.name).sorted()
    }

    /// Waits until it is known what is in the storages, but no longer.
    package func awaitSurveys(within timeout: Duration) {
        let deadline = ContinuousClock.now + timeout
        for backend in state.withLock({ $0.backends }).values { backend.awaitSurvey(within: deadline - .now) }
    }

    /// What is said of a backend whose storage has not been surveyed.
    package static let unsurveyedText =
        "it is not known yet which collections its storage has; until then a file that maps collections from it to "
        + "another place is refused"

    /// Whether a backend may have collections that the catalog lacks because it has not been surveyed since the catalog
    /// knows it.
    private func isUnsurveyed(_ backend: Backend) -> Bool {
        switch (catalog.storage(of: backend.name), backend.storageIdentity) {
        case (let known?, let identity): known.isUnsurveyed || identity.map { $0 != known.identity } ?? false
        case (nil, let identity?): !identity.isEmpty
        case (nil, nil): true
        }
    }

    /// Has the acts of a collection executed that follow from its placement.
    package func follow(_ name: [UInt8], retriesFailed: Bool = false) {
        let acts = Dictionary(grouping: catalog.entry(name).placement.acts, by: \.backend)
        let workers = state.withLock { state in
            for backend in acts.keys where state.workers[backend] == nil {
                state.workers[backend] = PlacementWorker(backend, self)
            }
            return state.workers
        }
        for (backend, worker) in workers { worker.follow(name, acts[backend] ?? [], retriesFailed: retriesFailed) }
        endDrops()
    }

    package func backend(_ name: String) -> Backend? { state.withLock { $0.backends[name] } }

    /// The rule that says where a collection is wanted.
    func rule(for name: [UInt8]) -> CollectionRule? { state.withLock { $0.rules }.rule(for: name.span) }

    /// From where a collection is served.
    package func serving(_ name: [UInt8], _ rule: CollectionRule) -> Serving {
        let placement = catalog.entry(name).placement
        let place = placement.authority ?? rule.place
        if catalog.isDoubted(name) {
            return Serving(place, closedReason: "it is in doubt where the collection is; see the daemon's log")
        }
        if placement.beginsFeed {
            return Serving(place, closedReason: "the feed of changes in \(place) has not begun anew yet")
        }
        guard placement.authority == nil else { return Serving(place) }
        if placement.isBlocked(place) {
            return Serving(place, closedReason: "the collection was dropped and is still being removed from \(place)")
        }
        if placement.originals.contains(place) {
            return Serving(place, closedReason: "the collection has been left in \(place)")
        }
        return Serving(place)
    }

    // MARK: Upkeep

    /// Has the backends look after every collection where it is served, be it used or not.
    package func keepAll() {
        let (backends, rules) = state.withLock { ($0.backends, $0.rules) }
        var kept: [String: [(name: [UInt8], format: CollectionRule.Format)]] = [:]
        for (name, entry) in catalog.entries {
            guard let place = entry.placement.served, rules.rule(for: name.span) != nil else { continue }
            kept[place.backend, default: []].append((name, place.format))
        }
        for (backendName, backend) in backends {
            backend.keep((kept[backendName] ?? []).map { backend.collection($0.name, $0.format) })
        }
    }

    /// The same for one collection.
    package func keep(_ name: [UInt8]) {
        let place = rule(for: name) == nil ? nil : catalog.entry(name).placement.served
        for (backendName, backend) in state.withLock({ $0.backends }) {
            let format = place?.backend == backendName ? place?.format : nil
            backend.keep(name, as: format.map { backend.collection(name, $0) })
        }
    }

    // MARK: Changes

    /// Executes a change, on the executor's thread.
    package func execute(_ change: some PlacementChange) throws(CRUDError) {
        guard let loops = state.withLock({ $0.loops }) else { throw CRUDError(.unavailable, "the daemon is starting") }
        do throws(CRUDError) {
            try PlacementExecutor.execute(change, catalog, loops, planning: planning)
        } catch {
            if error.code == .outcomeUnknown {
                logger.critical("\(error.message); no collection can be made, moved or dropped until then")
            }
            throw error
        }
    }

    /// Switches a collection, for the worker that waits for that.
    ///
    /// - Returns: false where it has to be put off.
    func switchOver(_ change: Switch) throws(CRUDError) -> Bool {
        let outcome = OneShot<Result<Bool, CRUDError>>()
        executor.enqueue { [self] in
            outcome.resolve(
                Result { () throws(CRUDError) in
                    try execute(change)
                    return true
                })
        }
        do throws(CRUDError) {
            return try outcome.wait().get()
        } catch {
            // It was not reached in time, as under load. Whatever prevents it for longer is met by the next step.
            let isLate = error.code == .unavailable || error.code == .outcomeUnknown
            if isLate, !change.isPrepared { return false }
            throw error
        }
    }

    /// Drops a collection, or what moves have left of it; callable on any thread.
    package func drop(_ request: DropRequest) {
        executor.enqueue { [self] in
            guard request.begin() else { return }
            do throws(CRUDError) {
                let wasThere: Bool
                if request.isOfOriginals {
                    let change = OriginalsDrop(request.collection, self)
                    try execute(change)
                    wasThere = change.wasThere
                } else {
                    let change = Drop(request.collection, requiresEmpty: request.requiresEmpty, self)
                    try execute(change)
                    wasThere = change.wasThere
                }
                let deadline = ContinuousClock.now + Self.replyTimeout
                state.withLock {
                    $0.drops.append(RecordedDrop(request: request, wasThere: wasThere, deadline: deadline))
                }
                endDrops()
            } catch {
                request.end(.failure(error))
            }
        }
    }

    /// Removes what has just been dropped, while its requests wait; where that does not succeed in time it is left to
    /// the acts.
    func remove(_ name: [UInt8], from place: CollectionPlace, within timeout: Duration) {
        guard let backend = backend(place.backend) else { return }
        let deadline = ContinuousClock.now + timeout
        let entry = catalog.entry(name)
        do throws(CRUDError) {
            while try !backend.remove(name, in: place.format, isShared: false, within: deadline - .now) {
                if deadline < .now { return }
            }
            _ = try commit(.removed(place), of: name, from: entry) { nil }
        } catch {
            logger.error("collection \(quoted(name)) is dropped, and cannot be removed from \(place): \(error.message)")
        }
    }

    /// Records the end of an act.
    ///
    /// - Parameter entry: on which the act is based; where it is not the current one nothing changes.
    func commit(
        _ event: PlacementEvent, of name: [UInt8], from entry: Catalog.Entry, _ message: () -> String?
    ) throws(CRUDError) -> ActTask.Next {
        guard case .to(let placement) = entry.placement.next(event) else { return .done }
        do throws(CatalogError) {
            let transition = Catalog.Transition(name, from: entry, to: placement)
            try planning.withLock { _ throws(CatalogError) in try catalog.commit([transition]) }
            if let message = message() { logger.notice("\(message)") }
        } catch {
            if case .stale = error { return .done }
            noteDoubt(error)
            throw error.error
        }
        return .done
    }

    /// Lets a collection get its first record, on the thread of the backend's writer.
    ///
    /// - Returns: nil, or why it must not.
    package func admit(
        _ name: [UInt8], at place: CollectionPlace, isNew: Bool, by creator: CollectionCreator? = nil
    ) -> CRUDError? {
        let storage = backend(place.backend).flatMap(CatalogStorage.init(of:))
        let refusal = catalog.admit(name, at: place, isNew: isNew, by: creator, in: storage)
        // The executor's thread looks what is to be done about it.
        if catalog.isInDoubt { executor.enqueue("doubt") {} }
        return refusal
    }

    /// In which format a backend may have a collection that the catalog does not know, and that is wanted there; nil:
    /// none. Callable on any thread.
    package func formatToAdopt(_ name: [UInt8], in backend: String) -> CollectionRule.Format? {
        guard let place = rule(for: name)?.place, place.backend == backend, catalog.entry(name) == .none else {
            return nil
        }
        return place.format
    }

    /// Makes collections known that have been found in a backend; callable on any thread.
    ///
    /// - Returns: why that is not possible now.
    package func adopt(
        _ found: [(name: [UInt8], format: CollectionRule.Format)], in backend: String
    ) -> CRUDError? {
        let transitions = found.compactMap { name, format -> Catalog.Transition? in
            let entry = catalog.entry(name)
            // The rules may be others since it was found.
            guard entry == .none, formatToAdopt(name, in: backend) == format,
                case .to(let placement) = entry.placement.next(.create(at: .init(backend: backend, format: format)))
            else { return nil }
            return Catalog.Transition(name, from: entry, to: placement)
        }
        do throws(CatalogError) {
            let storage = self.backend(backend).flatMap(CatalogStorage.init(of:))
            let news = storage.flatMap { catalog.news(of: $0, of: backend) }
            try catalog.commit(transitions, storages: news.map { [backend: $0] } ?? [:])
        } catch {
            noteDoubt(error)
            return error.error
        }
        if !transitions.isEmpty {
            let plural = transitions.count == 1 ? " was" : "s were"
            logger.notice("backend \(backend): \(transitions.count) collection\(plural) found that the catalog lacked")
        }
        for transition in transitions { keep(transition.name) }
        return nil
    }

    /// Remembers that the catalog knows every collection of a backend that the file wants there; callable on any
    /// thread.
    ///
    /// - Parameter names: of all collections that are in its storage.
    /// - Returns: why that cannot be remembered now.
    package func noteSurvey(of backend: String, _ names: [[UInt8]]) -> CRUDError? {
        guard let storage = self.backend(backend).flatMap(CatalogStorage.init(of:)), !storage.isNothing,
            catalog.news(of: storage, of: backend) != nil || catalog.storage(of: backend)?.isUnsurveyed == true
        else { return nil }
        do throws(CatalogError) {
            try catalog.commit([], storages: [backend: storage])
        } catch {
            noteDoubt(error)
            return error.error
        }
        let unnamed = names.filter { rule(for: $0) == nil && catalog.entry($0) == .none }
        if !unnamed.isEmpty {
            let shown = unnamed.prefix(Self.maximumShown).map(quoted).joined(separator: ", ")
            let omitted = unnamed.count - Self.maximumShown
            logger.warning(
                """
                backend \(backend): no rule of the configuration names these collections, which its storage has: \
                \(shown)\(omitted > 0 ? " and \(omitted) more" : "")
                """)
        }
        return nil
    }

    /// How many collections that no rule names a line of the log shows.
    private static let maximumShown = 10

    /// Remembers the storage of a backend, which may have been opened later than its configuration was recorded;
    /// callable on any thread.
    package func noteStorage(of name: String) {
        executor.enqueue { [self] in
            guard let storage = backend(name).flatMap(CatalogStorage.init(of:)),
                let news = catalog.news(of: storage, of: name)
            else { return }
            do throws(CatalogError) {
                try catalog.commit([], storages: [name: news])
            } catch {
                logger.warning("cannot remember which storage backend \(name) has: \(error.error.message)")
                noteDoubt(error)
            }
        }
    }

    private func noteDoubt(_ error: CatalogError) {
        guard case .inDoubt(let cause) = error else { return }
        logger.critical("the catalog of collections is in doubt: \(cause); no collection can be made, moved or dropped")
        executor.enqueue("doubt") {}
    }

    // MARK: Time

    /// Replies to drops of which nothing is left, or which have waited long enough.
    private func endDrops() {
        let ended = state.withLock { state in
            let ended = state.drops.filter { drop in
                drop.deadline <= .now || catalog.entry(drop.request.collection).placement.obsolete.isEmpty
            }
            state.drops.removeAll { drop in ended.contains { $0.request === drop.request } }
            return ended
        }
        for drop in ended {
            let removing = progress(of: drop.request.collection).removals
            drop.request.end(
                .success(.init(wasThere: drop.wasThere, removing: removing.map { ($0.place, $0.reason) })))
        }
    }

    /// - Returns: whether something waits for time to pass.
    private func tick() -> Bool {
        endDrops()
        if catalog.isInDoubt { endDoubt() }
        return catalog.isInDoubt || state.withLock { !$0.drops.isEmpty }
    }

    private func endDoubt() {
        let isDue = state.withLock { state in
            if let since = state.doubtSince, ContinuousClock.now - since < Self.doubtPause { return false }
            state.doubtSince = .now
            return true
        }
        guard isDue, catalog.resolveDoubt() else { return }
        logger.notice("the catalog of collections is written again, as it was before the change that was in doubt")
    }

    // MARK: Progress

    /// What is to be done for all collections, by their names: of one moment.
    package var progress: [PlacementProgress] {
        // Before the placements: what is not done yet has its progress, whatever ends meanwhile.
        let acts = actProgress
        return catalog.restlessEntries.sorted { $0.name.lexicographicallyPrecedes($1.name) }.map { name, entry in
            PlacementProgress(of: name, entry.placement, acts.filter { $0.collection == name })
        }
    }

    /// The same of one collection, which may be at rest.
    package func progress(of name: [UInt8]) -> PlacementProgress {
        let acts = actProgress.filter { $0.collection == name }
        return PlacementProgress(of: name, catalog.entry(name).placement, acts)
    }

    private var actProgress: [ActProgress] {
        state.withLock { Array($0.workers.values) }.flatMap(\.tasks).map(\.progress)
    }
}

extension Placement.Act {
    /// The backend in which it changes something.
    fileprivate var backend: String {
        switch self {
        case .remove(let place), .probe(let place), .copy(_, to: let place), .beginFeed(let place): place.backend
        }
    }
}
