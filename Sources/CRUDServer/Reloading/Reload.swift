import CRUDConfiguration
import CRUDModel
import CRUDPluginHost
import CRUDStorage
import CRUDThreads
import Logging

/// One reload: takes a running daemon from one configuration to another, or leaves it as it is.
///
/// 1. The new file is read and checked, and plugins that it names for the first time are loaded. Nothing is touched
///    yet.
/// 2. Where backends are to be exchanged, or collections to live elsewhere, the event loops **quiesce** the collections
///    concerned: their requests wait in their sessions, in order. Then the backends are **drained**, so that from now
///    on nothing changes there.
/// 3. No records may be orphaned: collections that hold some stay where they are, and are moved from now on where that
///    is wanted (``PlacePlan``).
/// 4. Backends that leave are closed, then those that come are opened: two of them may be one storage under two
///    definitions. If one does not open, or lacks the records that it had by its old definition (``HeldRecords``),
///    those that left are opened again and the reload is refused.
/// 5. The loops switch to the new ``Service``, each between two iterations, and start what has waited.
///
/// A backend whose definition stays the same is not touched at all.
struct Reload {
    private let current: Service
    private let loops: LoopGroup
    private let fixed: FixedSettings
    private let options: PlacePlan.Options
    private let factory: BackendFactory

    /// How long a backend may take to finish what it has been given. One that hangs must not make the reload hang, nor
    /// those whose requests wait.
    private static let drainTimeout = Duration.seconds(10)

    init(_ current: Service, _ loops: LoopGroup, fixed: FixedSettings, _ options: PlacePlan.Options) {
        self.current = current
        self.loops = loops
        self.fixed = fixed
        self.options = options
        factory = BackendFactory(
            catalog: current.catalog, cache: current.cache, loopCount: current.loopCount, logger: current.logger)
    }

    /// What is served afterwards, and what has changed or why nothing has.
    struct Outcome {
        let service: Service
        let result: Result<ReloadChanges, ReloadRefusal>
    }

    func execute(_ load: () throws(InvalidConfiguration) -> Configuration) -> Outcome {
        do throws(InvalidConfiguration) {
            let configuration = try load()
            return exchange(
                for: configuration, try PluginSet(configuration, loopCount: current.loopCount, logger: current.logger))
        } catch {
            let invalid = error.withPluginErrors(current.logger)
            return Outcome(service: current, result: .failure(ReloadRefusal(invalid.diagnostics)))
        }
    }

    private func exchange(for configuration: Configuration, _ plugins: PluginSet) -> Outcome {
        var plan = BackendPlan(from: current, to: configuration, plugins)
        let leaving = plan.leaving.map(\.backend)
        current.mover.stop { move in leaving.contains { move.uses($0) } }
        let outcome = exchange(for: configuration, plugins, &plan)
        var isChanged = false
        if case .success = outcome.result { isChanged = true }
        outcome.service.mover.follow(outcome.service.backends, retriesFailed: isChanged && options.move)
        return outcome
    }

    private func exchange(
        for configuration: Configuration, _ plugins: PluginSet, _ plan: inout BackendPlan
    ) -> Outcome {
        var places = placePlan(configuration)
        let mustQuiesce = !current.rules.mapsLike(places.rules) || !plan.leaving.isEmpty
        do throws(ReloadRefusal) {
            if !places.diagnostics.isEmpty { throw ReloadRefusal(places.diagnostics) }
            if mustQuiesce {
                try quiesceAndDrain(.changed(backends: plan.leaving.map(\.backend), rules: places.rules))
            }
            // What was empty may have got records before it was quiesced.
            if mustQuiesce { places = placePlan(configuration) }
            if !places.diagnostics.isEmpty { throw ReloadRefusal(places.diagnostics) }
        } catch {
            if mustQuiesce { loops.serve(current) }
            return Outcome(service: current, result: .failure(error))
        }
        let held = options.force ? nil : HeldRecords(plan, current, configuration)
        if let lost = held?.diagnosticsBeforeClosing(plan), !lost.isEmpty {
            loops.serve(current)
            return Outcome(service: current, result: .failure(ReloadRefusal(lost)))
        }
        let backends: [Backend]
        do throws(ReloadRefusal) {
            backends = try exchangeBackends(&plan, configuration, plugins, places, held)
        } catch {
            let service = reopen(plan)
            loops.serve(service)
            return Outcome(service: service, result: .failure(error))
        }
        follow(configuration, places.rules)
        let service = Service(
            after: current, configuration: configuration, plugins: plugins.all, backends: backends)
        service.setLayouts()
        service.sessions.limits = configuration.limits
        followTuning(service)
        loops.serve(service)
        let changes = current.configuration.changes(to: configuration)
        let lines = plan.changes + changes + fixed.changes(in: configuration) + plugins.warnings
        return Outcome(service: service, result: .success(ReloadChanges(lines: lines, moves: places.namesOfMoves)))
    }

    // MARK: Checks

    /// Has the requests of collections wait, and drains the backends that these are in, lest a write in flight make a
    /// record in the old place after that was found empty.
    private func quiesceAndDrain(_ collections: QuiescedCollections) throws(ReloadRefusal) {
        let deadline = ContinuousClock.now + Self.drainTimeout
        guard let backends = loops.quiesce(collections, within: Self.drainTimeout) else {
            throw ReloadRefusal(unavailable: "a child process does not finish its reads")
        }
        for backend in backends {
            guard backend.drain(within: deadline - .now) else {
                throw ReloadRefusal(unavailable: "backend \(backend.name) does not finish its requests in flight")
            }
        }
    }

    private func placePlan(_ configuration: Configuration) -> PlacePlan {
        PlacePlan(configuration, current.catalog, current.backends, options)
    }

    private func follow(_ configuration: Configuration, _ rules: CollectionRules) {
        do throws(SystemError) {
            try current.catalog.follow(rules, maximumBornByGlob: configuration.limits.collections)
        } catch {
            current.logger.warning("\(error)")
        }
    }

    private func followTuning(_ service: Service) {
        AdaptiveSpin.limit = service.configuration.busyPoll
        let bytes = service.configuration.cacheBytes
        if bytes != current.configuration.cacheBytes { service.cache.resize(to: bytes) }
        for (definition, backend) in zip(service.configuration.backends, service.backends) {
            backend.cache?.cacheRecords(definition.cachesRecords)
        }
    }

    /// Begins and cancels moves, the last thing that can be refused.
    private func beginMoves(_ places: PlacePlan, _ backends: [Backend]) throws(ReloadRefusal) {
        let diagnostics = places.diagnostics(of: backends)
        if !diagnostics.isEmpty { throw ReloadRefusal(diagnostics) }
        current.mover.stop { places.cancellations.contains($0.name) }
        do throws(SystemError) {
            try places.begin(current.catalog)
        } catch {
            throw ReloadRefusal(unavailable: "\(error)")
        }
    }

    // MARK: Backends

    /// Closes what leaves and opens what comes.
    ///
    /// - Returns: the backends of the configuration.
    private func exchangeBackends(
        _ plan: inout BackendPlan, _ configuration: Configuration, _ plugins: PluginSet, _ places: PlacePlan,
        _ held: HeldRecords?
    ) throws(ReloadRefusal) -> [Backend] {
        for (_, backend) in plan.leaving { backend.stop() }
        let backends = plan.coming.compactMap { definition in
            plugins[definition].map { factory.make(definition, $0) }
        }
        do throws(ReloadRefusal) {
            let openings = try open(backends)
            for (definition, opening) in zip(plan.coming, openings) {
                try check(opening, definition, &plan, configuration)
            }
            let opened = zip(backends, openings).filter { if case .open = $1 { true } else { false } }.map(\.0)
            if let orphaned = held?.diagnostics(of: opened), !orphaned.isEmpty { throw ReloadRefusal(orphaned) }
            let all = configuration.backends.compactMap { definition in
                plan.staying[definition.name] ?? backends.first { $0.name == definition.name }
            }
            try beginMoves(places, all)
            return all
        } catch {
            for backend in backends { backend.stop() }
            throw error
        }
    }

    private func open(_ backends: [Backend]) throws(ReloadRefusal) -> [BackendFactory.Opening] {
        do throws(ThreadFailure) {
            return try BackendFactory.open(backends)
        } catch {
            throw ReloadRefusal(unavailable: "the system has no thread for another backend")
        }
    }

    private func check(
        _ opening: BackendFactory.Opening, _ definition: BackendConfiguration, _ plan: inout BackendPlan,
        _ configuration: Configuration
    ) throws(ReloadRefusal) {
        switch opening {
        case .open: break
        case .pending: plan.note("backend \(definition.name): not open yet, its requests wait")
        case .failed(let failure) where failure.isFinal:
            throw ReloadRefusal([configuration.diagnostic(of: failure, opening: definition)])
        case .failed(let failure) where plan.leaving.contains { $0.definition.name == definition.name }:
            throw ReloadRefusal(unavailable: "backend \(definition.name) cannot be opened: \(failure.message)")
        case .failed(let failure):
            // As at a start.
            plan.note("backend \(definition.name): not available now, will be retried: \(failure.message)")
        }
    }

    /// Opens again what has left, by its old definition.
    private func reopen(_ plan: BackendPlan) -> Service {
        let backends = plan.leaving.map { factory.make($0.definition, $0.backend.plugin) }
        do throws(ThreadFailure) {
            for (backend, opening) in zip(backends, try BackendFactory.open(backends)) {
                let reason: String
                switch opening {
                case .open: continue
                case .failed(let failure): reason = failure.message
                case .pending: reason = "it has not replied yet"
                }
                current.logger.critical("backend \(backend.name) does not open again: \(reason)")
            }
        } catch {
            current.logger.critical("the system has no thread to open backends again (errno \(error.code))")
        }
        let reopened = Dictionary(uniqueKeysWithValues: backends.map { ($0.name, $0) })
        let service = Service(
            after: current, configuration: current.configuration, plugins: current.plugins,
            backends: current.backends.map { reopened[$0.name] ?? $0 })
        service.setLayouts()
        return service
    }
}
