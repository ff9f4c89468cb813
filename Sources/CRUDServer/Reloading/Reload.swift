import CRUDConfiguration
import CRUDCore
import CRUDModel
import CRUDPluginHost
import Logging

/// One reload: takes a running daemon from one configuration to another, or leaves it as it is.
///
/// 1. The new file is read and checked, and plugins that it names for the first time are loaded. Nothing is touched yet.
/// 2. Where backends are to be exchanged, or collections to live elsewhere, the event loops **hold** the requests of the
///    collections concerned: they wait in their sessions, in order. What the backends have in hand is carried out, so
///    that from now on nothing moves there.
/// 3. No collection may lose sight of its records.
/// 4. Backends that leave are closed, then those that come are opened: two of them may be one storage under two
///    definitions. If one does not open, those that left are opened again and the reload is refused.
/// 5. The loops go over to the new ``Service``, each between two turns, and take up what they have held.
///
/// A backend whose definition stays the same is not touched at all.
struct Reload {
    private let current: Service
    private let loops: [Mailbox]
    private let fixed: FixedSettings
    private let force: Bool
    private let factory: BackendFactory

    /// How long a backend may take to finish what it has in hand. One that hangs must not make the reload hang, nor those
    /// whose requests are held.
    private static let patience = Duration.seconds(10)

    init(_ current: Service, _ loops: [Mailbox], fixed: FixedSettings, force: Bool) {
        self.current = current
        self.loops = loops
        self.fixed = fixed
        self.force = force
        factory = BackendFactory(catalog: current.catalog, loopCount: current.loopCount, logger: current.logger)
    }

    /// What is served afterwards, and what has changed or why nothing has.
    struct Outcome {
        let service: Service
        let result: Result<[String], ReloadRefusal>
    }

    func carryOut(_ load: () throws(InvalidConfiguration) -> Configuration) -> Outcome {
        do throws(InvalidConfiguration) {
            let configuration = try load()
            return exchange(
                for: configuration, try PluginSet(configuration, loopCount: current.loopCount, logger: current.logger))
        } catch {
            return Outcome(service: current, result: .failure(ReloadRefusal(error.faults)))
        }
    }

    private func exchange(for configuration: Configuration, _ plugins: PluginSet) -> Outcome {
        var plan = BackendPlan(from: current, to: configuration, plugins)
        let movesCollections = !current.configuration.collections.mapsLike(configuration.collections)
        let needsHold = movesCollections || !plan.leaving.isEmpty
        do throws(ReloadRefusal) {
            if needsHold { try hold(plan.leaving.map(\.backend), configuration.collections) }
            try settle(plan, movesCollections: movesCollections)
            if needsHold, !force { try checkSight(under: configuration) }
        } catch {
            if needsHold { serve(current) }
            return Outcome(service: current, result: .failure(error))
        }
        let opened: [String: Backend]
        do throws(ReloadRefusal) {
            opened = try exchangeBackends(&plan, configuration, plugins)
        } catch {
            let service = reopen(plan)
            serve(service)
            return Outcome(service: service, result: .failure(error))
        }
        let service = Service(
            after: current, configuration: configuration, plugins: plugins.all,
            backends: configuration.backends.compactMap { plan.staying[$0.name] ?? opened[$0.name] })
        follow(configuration)
        service.sessions.limits = configuration.limits
        serve(service)
        let changes = current.configuration.changes(to: configuration)
        return Outcome(
            service: service,
            result: .success(plan.changes + changes + fixed.changes(in: configuration) + plugins.warnings))
    }

    // MARK: Event loops

    /// Has every loop ask nothing more of these backends and of collections that move, and waits until what loops look up
    /// in children by themselves has been answered.
    private func hold(_ backends: [Backend], _ rules: CollectionRules) throws(ReloadRefusal) {
        let hold = CollectionHold(backends: backends, rules: rules)
        let end = ContinuousClock.now + Self.patience
        for acknowledgement in tell({ .hold(hold, $0) }) {
            guard acknowledgement.wait(atMost: end - .now) != nil else {
                throw ReloadRefusal(unavailable: "a child process does not finish what it has in hand")
            }
        }
    }

    /// Has every loop go over to a service, and waits until all have.
    private func serve(_ service: Service) {
        for acknowledgement in tell({ .serve(service, $0) }) { _ = acknowledgement.wait() }
    }

    /// Tells every loop something; answers what each will acknowledge it with.
    private func tell(_ message: (Handover<Bool>) -> Mailbox.Message) -> [Handover<Bool>] {
        loops.map { loop in
            let acknowledgement = Handover<Bool>()
            loop.post(message(acknowledgement))
            return acknowledgement
        }
    }

    // MARK: Checks

    /// Waits until the backends have carried out what they had in hand: those that leave, and where collections move
    /// all others too, lest a write under way make a record in the old place after it was found empty, or what a read
    /// has found in the old format be taken for the new one.
    private func settle(_ plan: BackendPlan, movesCollections: Bool) throws(ReloadRefusal) {
        let others = movesCollections ? Array(plan.staying.values) : []
        for backend in plan.leaving.map(\.backend) + others {
            guard backend.settle(within: Self.patience) else {
                throw ReloadRefusal(unavailable: "backend \(backend.name) does not finish what it has in hand")
            }
        }
    }

    private func checkSight(under configuration: Configuration) throws(ReloadRefusal) {
        let faults = SightCheck(configuration, backends: current.backends).faults(in: current.catalog)
        if !faults.isEmpty { throw ReloadRefusal(faults) }
    }

    private func follow(_ configuration: Configuration) {
        do throws(SystemFault) {
            try current.catalog.follow(
                configuration.collections, maximumBornByGlob: configuration.limits.collections)
        } catch {
            current.logger.warning("\(error)")
        }
    }

    // MARK: Backends

    /// Closes what leaves and opens what comes; the backends that have been opened, by name.
    private func exchangeBackends(
        _ plan: inout BackendPlan, _ configuration: Configuration, _ plugins: PluginSet
    ) throws(ReloadRefusal) -> [String: Backend] {
        for (_, backend) in plan.leaving { backend.stop() }
        let backends = plan.coming.compactMap { definition in
            plugins[definition].map { factory.make(definition, $0) }
        }
        do throws(ReloadRefusal) {
            for (definition, opening) in zip(plan.coming, try open(backends)) {
                try judge(opening, definition, &plan, configuration)
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

    private func judge(
        _ opening: BackendFactory.Opening, _ definition: BackendConfiguration, _ plan: inout BackendPlan,
        _ configuration: Configuration
    ) throws(ReloadRefusal) {
        switch opening {
        case .open: break
        case .undecided: plan.note("backend \(definition.name): not open yet, its requests wait")
        case .failed(let failure) where failure.isFinal:
            throw ReloadRefusal([configuration.fault(of: failure, opening: definition)])
        case .failed(let failure) where plan.leaving.contains { $0.definition.name == definition.name }:
            throw ReloadRefusal(unavailable: "backend \(definition.name) cannot be opened: \(failure.message)")
        case .failed(let failure):
            // As at a start.
            plan.note("backend \(definition.name): not available now, tried again: \(failure.message)")
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
