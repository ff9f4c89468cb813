package import CRUDConfiguration
import CRUDCore
import CRUDEventLoop
import CRUDModel
import CRUDPluginHost
import Glibc
import Logging

/// The daemon from its configuration to its end.
package struct Daemon {
    private let configuration: Configuration
    private let manager: ServiceManager
    private let logger: Logger
    /// Half the cores are the applications'; more than four loops have not been seen to help.
    private let loopCount: Int

    package init(_ configuration: Configuration, manager: ServiceManager) {
        self.configuration = configuration
        self.manager = manager
        logger = Self.logger(configuration)
        loopCount = max(1, min(4, sysconf(CInt(_SC_NPROCESSORS_ONLN)) / 2))
    }

    /// Loads the plugins and has them check their options; no storage is touched.
    ///
    /// - Throws: ``StartFailure`` with every fault and its place in the file.
    package static func check(_ configuration: Configuration) throws(StartFailure) {
        _ = try PluginSet(configuration, logger: logger(configuration))
    }

    private static func logger(_ configuration: Configuration) -> Logger {
        let level = Logger.Level(rawValue: configuration.logLevel.rawValue) ?? .info
        return Logger(label: "crudd") { _ in JournalLogHandler(level: level) }
    }

    /// Starts, serves until SIGTERM or SIGINT, and stops.
    ///
    /// - Throws: ``StartFailure`` where the daemon cannot begin.
    ///
    /// - Parameter force: whether collections may lose sight of their records.
    package func run(force: Bool) throws(StartFailure) {
        let shutdown = try handleSignals()
        raiseDescriptorLimit()
        let plugins = try PluginSet(configuration, logger: logger)
        // The place is taken before any storage is touched, the catalog included: a second daemon must not open the
        // first one's databases, nor mend its catalog.
        let listening = try Listening(configuration, manager)
        defer { listening.close() }
        let catalog: CollectionCatalog
        do throws(SystemFault) {
            catalog = try CollectionCatalog(
                directory: configuration.stateDirectory, rules: configuration.collections,
                maximumBornByGlob: configuration.limits.collections)
        } catch {
            throw StartFailure(.system, "state_directory: \(error)")
        }
        let backends = makeBackends(plugins, catalog)
        try open(backends)
        let service = Service(
            configuration: configuration, plugins: plugins.all, backends: backends, catalog: catalog,
            loopCount: loopCount, logger: logger)
        let faults = force ? [] : SightCheck(configuration, backends: backends).faults(in: catalog)
        guard faults.isEmpty else {
            for backend in backends { backend.stop() }
            throw StartFailure(.configuration, lines: faults)
        }
        guard try serve(service, listening.descriptors, shutdown) else {
            // A backend hangs; waiting for it would hang as well. What was acknowledged is durable.
            logger.critical("not everything under way could be finished")
            return
        }
        for backend in backends { backend.stop() }
    }

    // MARK: Starting

    private func handleSignals() throws(StartFailure) -> Shutdown {
        let shutdown = Shutdown(manager)
        SignalThread.block()
        do throws(ThreadFailure) {
            try SignalThread.start { [logger] number in
                if number == SIGHUP {
                    logger.notice("the configuration is read at start only, in this version of crudd")
                } else {
                    shutdown.begin()
                }
            }
        } catch {
            throw StartFailure(.system, "the system has no thread for signals (errno \(error.code))")
        }
        return shutdown
    }

    /// A soft limit of 1024 descriptors, which is the usual one, would be too few for as many sessions.
    private func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    private func makeBackends(_ plugins: PluginSet, _ catalog: CollectionCatalog) -> [Backend] {
        configuration.backends.compactMap { backend in
            guard let plugin = plugins[backend] else { return nil }
            return Backend(
                name: backend.name, plugin: plugin, options: backend.options, loopCount: loopCount, logger: logger
            ) { collection in
                catalog.admit(.init(name: collection.name, backend: backend.name, format: collection.format))
            }
        }
    }

    /// Opens every backend, all at the same time. One that is not available now stays down and is tried again; one
    /// that can never be opened ends the start.
    private func open(_ backends: [Backend]) throws(StartFailure) {
        let openings = backends.map { _ in Handover<PluginFailure?>() }
        for (backend, opening) in zip(backends, openings) {
            do throws(ThreadFailure) {
                try backend.start { opening.give($0) }
            } catch {
                throw StartFailure(.system, "the system has no thread for backend \(backend.name)")
            }
        }
        var faults: [String] = []
        for (backend, opening) in zip(backends, openings) {
            guard let failure = opening.wait(), failure.isFinal,
                let definition = configuration.backends.first(where: { $0.name == backend.name })
            else { continue }
            faults.append(
                configuration.fault(
                    at: definition.position(ofOption: failure.pointer), "backend \(backend.name): \(failure.message)"))
        }
        guard !faults.isEmpty else { return }
        for backend in backends { backend.stop() }
        throw StartFailure(.configuration, lines: faults)
    }

    // MARK: Serving

    /// Serves until the daemon is told to stop; false if something under way could not be finished.
    private func serve(
        _ service: Service, _ descriptors: [CInt], _ shutdown: Shutdown
    ) throws(StartFailure) -> Bool {
        do {
            let first = try ServiceLoop(service, number: 0)
            let others = try (1..<loopCount).map { try LoopThread(service, number: $0) }
            let mailboxes = [first.mailbox] + others.map(\.mailbox)
            try first.listen(at: descriptors, Acceptor(mailboxes, logger: logger))
            if let interval = manager.watchdogInterval { first.every(interval) { manager.alive() } }
            shutdown.serving(mailboxes)
            manager.ready("Serving \(service.backends.count) backends")
            logger.notice("crudd \(CRUDVersion.current) is ready")
            let hasFinished = first.run()
            return others.map { $0.join() }.allSatisfy(\.self) && hasFinished
        } catch {
            throw StartFailure(.system, "\(error)")
        }
    }
}
