import CRUDConfiguration
import CRUDModel
import CRUDPlacement
import CRUDPluginHost
import CRUDStorage
import CRUDThreads
import Logging

/// One reload: takes a running daemon from one configuration to another, or leaves it as it is.
///
/// 1. The new file is read and checked, and plugins that it names for the first time are loaded. What becomes of
///    collections is a ``Plan``; where that has a refusal, nothing has been touched yet.
/// 2. Where backends are to be exchanged, or collections stored in another way, the event loops **quiesce** the
///    collections concerned: their requests wait in their sessions, in order. Then the backends are **drained**, so
///    that from now on nothing changes there, and the plan is made again.
/// 3. Backends that leave are closed, then those that come are opened: two of them may be one storage under two
///    definitions. If one does not open, or is another storage than that of its collections (``OpenedBackends``), those
///    that left are opened again and the reload is refused.
/// 4. The plan is recorded in the catalog, by one record: before it the old file is in force, behind it the new one.
///    Then feeds begin anew where the plan says so, before the collections are served.
/// 5. The loops switch to the new ``Service``, each between two iterations, and start what has waited.
///
/// A backend whose definition stays the same is not touched at all.
final class Reload: PlacementChange {
    /// What is served now.
    private(set) var service: Service
    /// Why it is refused.
    private(set) var refusal: ReloadRefusal?
    private let former: Service
    private let loops: LoopGroup
    private let configuration: Configuration
    private let plugins: PluginSet
    private let fixed: FixedSettings
    private let options: Plan.Options
    private let factory: BackendFactory
    private var backendPlan: BackendPlan
    private var plan: Plan
    private var opened: OpenedBackends?
    private var recorded: [Catalog.Transition] = []
    /// Whether backends have been closed.
    private var hasExchanged = false

    /// How long a backend may take to finish what it has been given. One that hangs must not make the reload hang, nor
    /// those whose requests wait.
    let timeout = Duration.seconds(10)
    /// How long is waited until it is known what is in the storages concerned.
    private static let surveyTimeout = Duration.seconds(2)
    /// How long is waited for feeds that have to begin anew; a collection whose feed takes longer is served later.
    private static let feedTimeout = Duration.seconds(2)

    /// Computes what is to change.
    ///
    /// - Throws: ``ReloadRefusal`` where nothing must.
    init(
        from serving: Serving, to configuration: Configuration, _ plugins: PluginSet, _ options: Plan.Options
    ) throws(ReloadRefusal) {
        let current = serving.service
        former = current
        loops = serving.loops
        service = current
        self.configuration = configuration
        self.plugins = plugins
        fixed = serving.fixed
        self.options = options
        factory = BackendFactory(
            control: current.control, cache: current.cache, quotas: current.quotas, loopCount: current.loopCount,
            logger: current.logger)
        backendPlan = BackendPlan(from: current, to: configuration, plugins)
        // What has only just been found is not to be orphaned, nor what has not been found yet.
        if let reason = Self.awaitSurveys(from: current, to: configuration, options).first {
            throw ReloadRefusal(unavailable: reason)
        }
        plan = try Self.plan(from: current, to: configuration, plugins, options)
    }

    // MARK: The plan

    /// Waits until it is known what is in the storages that the change concerns.
    ///
    /// - Returns: a reason to refuse the change for each backend of which that is not known.
    static func awaitSurveys(
        from current: Service, to configuration: Configuration, _ options: Plan.Options
    ) -> [String] {
        let unsurveyed = current.control.awaitSurveys(
            of: current.rules, before: configuration.collections, within: surveyTimeout)
        guard !options.force else { return [] }
        return unsurveyed.map { "backend \($0): \(PlacementControl.unsurveyedText), but with --force" }
    }

    private static func plan(
        from current: Service, to configuration: Configuration, _ plugins: PluginSet, _ options: Plan.Options
    ) throws(ReloadRefusal) -> Plan {
        let plan = Plan(from: current, to: configuration, plugins, options)
        let diagnostics = configuration.diagnostics(of: plan.refusals)
        if !diagnostics.isEmpty { throw ReloadRefusal(diagnostics) }
        return plan
    }

    /// What has changed.
    var changes: ReloadChanges {
        ReloadChanges(from: former, to: configuration, backendPlan, plan, plugins, fixed)
    }

    // MARK: PlacementChange

    var scope: QuiescedCollections? {
        let names = Set(plan.transitions.map(\.name))
        let isStoredAlike = former.rules.storesLike(configuration.collections)
        if isStoredAlike, names.isEmpty, backendPlan.leaving.isEmpty { return nil }
        return .changed(
            backends: backendPlan.leaving.map(\.backend), from: former.rules, to: configuration.collections,
            names: names)
    }

    func prepare() throws(CRUDError) {
        do throws(ReloadRefusal) {
            // What was empty may have got records before it was quiesced.
            plan = try Self.plan(from: former, to: configuration, plugins, options)
            let volatile = options.force ? [] : backendPlan.volatileRecords(former, configuration)
            if !volatile.isEmpty { throw ReloadRefusal(volatile) }
            let backends = try exchangeBackends()
            service = Service(
                after: former, configuration: configuration, plugins: plugins.all, backends: backends)
        } catch {
            refusal = error
            throw error.error
        }
    }

    func transitions(_: Catalog) -> [Catalog.Transition] {
        recorded = opened?.transitions(plan.transitions) ?? plan.transitions
        return recorded
    }

    var storages: [String: CatalogStorage] { opened?.storages ?? [:] }

    func committed() {
        service.setLayouts()
        service.sessions.limits = configuration.limits
        AdaptiveSpin.limit = configuration.busyPoll
        let bytes = configuration.cacheBytes
        if bytes != former.configuration.cacheBytes { service.cache.resize(to: bytes) }
        for (definition, backend) in zip(configuration.backends, service.backends) {
            backend.cache?.cacheRecords(definition.cachesRecords)
        }
        service.followPlacements(retriesFailed: options.move)
        let names = recorded.map(\.name)
        for name in names { service.control.follow(name) }
        for name in service.control.awaitFeeds(of: names, within: Self.feedTimeout) {
            backendPlan.note(PlacementControl.closedText(of: name))
        }
        keep()
    }

    /// Has the backends look after what the change concerns, or, where backends are exchanged, after all collections.
    private func keep() {
        guard backendPlan.leaving.isEmpty, backendPlan.coming.isEmpty else { return service.control.keepAll() }
        let change = RuleChange(from: former.rules, to: configuration.collections)
        var names = change.names.union(recorded.map(\.name))
        if !change.globs.isEmpty { names.formUnion(service.control.catalog.entries.keys.filter(change.covers)) }
        for name in names { service.control.keep(name) }
    }

    func undo() {
        for backend in service.backends where !former.backends.contains(where: { $0 === backend }) { backend.stop() }
        service = former
        guard hasExchanged else { return }
        service = reopened()
        service.setLayouts()
        service.followPlacements()
        service.control.keepAll()
    }

    func serve(_ loops: any ServingLoops) {
        guard service !== former else { return loops.serveQuiesced() }
        self.loops.serve(service)
    }

    // MARK: Backends

    /// Closes what leaves and opens what comes.
    ///
    /// - Returns: the backends of the configuration.
    private func exchangeBackends() throws(ReloadRefusal) -> [Backend] {
        hasExchanged = !backendPlan.leaving.isEmpty
        for (_, backend) in backendPlan.leaving { backend.stop() }
        do throws(ReloadRefusal) {
            try openBackends()
        } catch {
            for backend in opened?.backends ?? [] { backend.stop() }
            throw error
        }
        let backends = opened?.backends ?? []
        for line in opened?.notices ?? [] { backendPlan.note(line) }
        return configuration.backends.compactMap { definition in
            backendPlan.staying[definition.name] ?? backends.first { $0.name == definition.name }
        }
    }

    private func openBackends() throws(ReloadRefusal) {
        do throws(ThreadFailure) {
            opened = try OpenedBackends(backendPlan.coming, plugins, factory)
        } catch {
            throw ReloadRefusal(unavailable: "the system has no thread for another backend")
        }
        for case (let definition, let failure) in opened?.finalFailures ?? [] {
            throw ReloadRefusal([configuration.diagnostic(of: failure, opening: definition)])
        }
        let refusals = options.force ? [] : opened?.refusals(configuration) ?? []
        if !refusals.isEmpty { throw ReloadRefusal(refusals) }
        do throws(ThreadFailure) {
            try opened?.openRest(force: options.force)
        } catch {
            throw ReloadRefusal(unavailable: "the system has no thread for another backend")
        }
        for attempt in opened?.attempts ?? [] { try check(attempt) }
    }

    /// Notes what an administrator has to know of a backend that is not open.
    private func check(_ attempt: OpenedBackends.Attempt) throws(ReloadRefusal) {
        let definition = attempt.definition
        switch attempt.opening {
        case .open: break
        case .pending: backendPlan.note("backend \(definition.name): not open yet, its requests wait")
        case .failed(let failure) where failure.isFinal:
            throw ReloadRefusal([configuration.diagnostic(of: failure, opening: definition)])
        case .failed(let failure) where backendPlan.leaving.contains { $0.definition.name == definition.name }:
            throw ReloadRefusal(unavailable: "backend \(definition.name) cannot be opened: \(failure.message)")
        case .failed(let failure):
            // As at a start.
            backendPlan.note("backend \(definition.name): not available now, will be retried: \(failure.message)")
        }
    }

    /// Opens again what has left, by its old definition.
    private func reopened() -> Service {
        let logger = former.logger
        let backends = backendPlan.leaving.map {
            factory.make($0.definition, $0.backend.plugin, factory.knownStorage(of: $0.definition.name) ?? .mayBeNew)
        }
        do throws(ThreadFailure) {
            for (backend, opening) in zip(backends, try BackendFactory.open(backends)) {
                let reason: String
                switch opening {
                case .open: continue
                case .failed(let failure): reason = failure.message
                case .pending: reason = "it has not replied yet"
                }
                logger.critical("backend \(backend.name) does not open again: \(reason)")
            }
        } catch {
            logger.critical("the system has no thread to open backends again (errno \(error.code))")
        }
        let reopened = Dictionary(uniqueKeysWithValues: backends.map { ($0.name, $0) })
        return Service(
            after: former, configuration: former.configuration, plugins: former.plugins,
            backends: former.backends.map { reopened[$0.name] ?? $0 })
    }
}
