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
/// 3. No records may be orphaned.
/// 4. Backends that leave are closed, then those that come are opened: two of them may be one storage under two
///    definitions. If one does not open, those that left are opened again and the reload is refused.
/// 5. The loops switch to the new ``Service``, each between two iterations, and start what has waited.
///
/// A backend whose definition stays the same is not touched at all.
struct Reload {
    private let current: Service
    private let loops: LoopGroup
    private let fixed: FixedSettings
    private let force: Bool
    private let factory: BackendFactory

    /// How long a backend may take to finish what it has been given. One that hangs must not make the reload hang, nor
    /// those whose requests wait.
    private static let drainTimeout = Duration.seconds(10)

    init(_ current: Service, _ loops: LoopGroup, fixed: FixedSettings, force: Bool) {
        self.current = current
        self.loops = loops
        self.fixed = fixed
        self.force = force
        factory = BackendFactory(
            catalog: current.catalog, cache: current.cache, loopCount: current.loopCount, logger: current.logger)
    }

    /// What is served afterwards, and what has changed or why nothing has.
    struct Outcome {
        let service: Service
        let result: Result<[String], ReloadRefusal>
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
        let movesCollections = !current.configuration.collections.mapsLike(configuration.collections)
        let mustQuiesce = movesCollections || !plan.leaving.isEmpty
        do throws(ReloadRefusal) {
            if mustQuiesce {
                let leaving = plan.leaving.map(\.backend)
                try quiesce(QuiescedCollections(backends: leaving, rules: configuration.collections))
            }
            try drain(plan, movesCollections: movesCollections)
            if mustQuiesce, !force { try checkOrphans(under: configuration) }
        } catch {
            if mustQuiesce { loops.serve(current) }
            return Outcome(service: current, result: .failure(error))
        }
        let opened: [String: Backend]
        do throws(ReloadRefusal) {
            opened = try exchangeBackends(&plan, configuration, plugins)
        } catch {
            let service = reopen(plan)
            loops.serve(service)
            return Outcome(service: service, result: .failure(error))
        }
        let service = Service(
            after: current, configuration: configuration, plugins: plugins.all,
            backends: configuration.backends.compactMap { plan.staying[$0.name] ?? opened[$0.name] })
        follow(configuration)
        service.sessions.limits = configuration.limits
        followTuning(service)
        loops.serve(service)
        let changes = current.configuration.changes(to: configuration)
        return Outcome(
            service: service,
            result: .success(plan.changes + changes + fixed.changes(in: configuration) + plugins.warnings))
    }

    // MARK: Checks

    private func quiesce(_ collections: QuiescedCollections) throws(ReloadRefusal) {
        guard loops.quiesce(collections, within: Self.drainTimeout) else {
            throw ReloadRefusal(unavailable: "a child process does not finish its reads")
        }
    }

    /// Drains the backends that leave, and where collections move all others too, lest a write in flight make a record
    /// in the old place after that was found empty, or what a read has found in the old format be taken for the new
    /// one.
    private func drain(_ plan: BackendPlan, movesCollections: Bool) throws(ReloadRefusal) {
        let others = movesCollections ? Array(plan.staying.values) : []
        for backend in plan.leaving.map(\.backend) + others {
            guard backend.drain(within: Self.drainTimeout) else {
                throw ReloadRefusal(unavailable: "backend \(backend.name) does not finish its requests in flight")
            }
        }
    }

    private func checkOrphans(under configuration: Configuration) throws(ReloadRefusal) {
        let diagnostics = OrphanCheck(configuration, backends: current.backends).diagnostics(current.catalog)
        if !diagnostics.isEmpty { throw ReloadRefusal(diagnostics) }
    }

    private func follow(_ configuration: Configuration) {
        do throws(SystemError) {
            try current.catalog.follow(
                configuration.collections, maximumBornByGlob: configuration.limits.collections)
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

    // MARK: Backends

    /// Closes what leaves and opens what comes.
    ///
    /// - Returns: the backends that have been opened, by name.
    private func exchangeBackends(
        _ plan: inout BackendPlan, _ configuration: Configuration, _ plugins: PluginSet
    ) throws(ReloadRefusal) -> [String: Backend] {
        for (_, backend) in plan.leaving { backend.stop() }
        let backends = plan.coming.compactMap { definition in
            plugins[definition].map { factory.make(definition, $0) }
        }
        do throws(ReloadRefusal) {
            for (definition, opening) in zip(plan.coming, try open(backends)) {
                try check(opening, definition, &plan, configuration)
            }
        } catch {
            for backend in backends { backend.stop() }
            throw error
        }
        return Dictionary(uniqueKeysWithValues: backends.map { ($0.name, $0) })
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
            throw ReloadRefusal(configuration.diagnostics(of: failure, opening: definition))
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
                if case .open = opening { continue }
                current.logger.critical("backend \(backend.name) does not open again")
            }
        } catch {
            current.logger.critical("the system has no thread to open backends again (errno \(error.code))")
        }
        let reopened = Dictionary(uniqueKeysWithValues: backends.map { ($0.name, $0) })
        return Service(
            after: current, configuration: current.configuration, plugins: current.plugins,
            backends: current.backends.map { reopened[$0.name] ?? $0 })
    }
}
