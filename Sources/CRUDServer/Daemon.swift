package import CRUDConfiguration
import CRUDEventLoop
import CRUDModel
import CRUDPluginHost
import CRUDStorage
import CRUDThreads
import Glibc
import Logging

/// The daemon from its configuration to its end.
package struct Daemon {
    private let configuration: Configuration
    private let manager: ServiceManager
    private let logger: Logger
    private let reloader: Reloader

    /// - Parameter load: reads the configuration; called again at each reload.
    /// - Throws: what `load` throws.
    package init(
        manager: ServiceManager, load: @escaping @Sendable () throws(InvalidConfiguration) -> Configuration
    ) throws(InvalidConfiguration) {
        configuration = try Self.configuration(load)
        self.manager = manager
        let threshold = LogThreshold(Logger.Level(configuration.logLevel))
        logger = Self.logger(threshold)
        reloader = Reloader(manager: manager, threshold: threshold, logger: logger, load: load)
    }

    /// Loads the plugins and has them check their options; no storage is touched.
    ///
    /// - Throws: `InvalidConfiguration` with every error and its place in the file; ``StartFailure`` where a plugin
    ///   could not be asked, with which a daemon would start all the same.
    package static func check(_ load: () throws(InvalidConfiguration) -> Configuration) throws {
        let configuration = try configuration(load)
        let logger = logger(LogThreshold(Logger.Level(configuration.logLevel)))
        let plugins = try PluginSet(configuration, loopCount: configuration.loopCount, logger: logger)
        if !plugins.unchecked.isEmpty {
            throw StartFailure(.unavailable, lines: plugins.unchecked.map(\.description))
        }
    }

    /// Reads the configuration. Where it has errors, plugins check the rest of it all the same.
    private static func configuration(
        _ load: () throws(InvalidConfiguration) -> Configuration
    ) throws(InvalidConfiguration) -> Configuration {
        do throws(InvalidConfiguration) {
            return try load()
        } catch {
            throw error.withPluginErrors(logger(LogThreshold(.info)))
        }
    }

    private static func logger(_ threshold: LogThreshold) -> Logger {
        Logger(label: "crudd") { _ in JournalLogHandler(threshold: threshold) }
    }

    /// Starts, serves until SIGTERM or SIGINT, and stops.
    ///
    /// - Parameters:
    ///   - force: whether records may be orphaned.
    ///   - move: whether collections that hold records are moved where the configuration changes their place.
    /// - Throws: ``StartFailure`` or `InvalidConfiguration` where the daemon cannot start.
    package func run(force: Bool, move: Bool) throws {
        let shutdown = try handleSignals()
        raiseDescriptorLimit()
        let plugins = try PluginSet(configuration, loopCount: configuration.loopCount, logger: logger)
        for warning in plugins.warnings { logger.warning("\(warning)") }
        // The socket path and the catalog are locked before any storage is touched: a second daemon must not open the
        // first one's databases, nor repair its catalog.
        let listening = try shutdown.listen { () throws(StartFailure) in try Listening(configuration, manager) }
        defer { listening.close() }
        let (catalog, lock) = try openCatalog()
        defer { withExtendedLifetime(lock) {} }
        AdaptiveSpin.limit = configuration.busyPoll
        let cache = RecordCache(bytes: configuration.cacheBytes)
        let factory = BackendFactory(
            catalog: catalog, cache: cache, loopCount: configuration.loopCount, logger: logger)
        let backends = configuration.backends.compactMap { definition in
            plugins[definition].map { factory.make(definition, $0) }
        }
        do {
            try open(backends)
            try place(catalog, backends, PlacePlan.Options(force: force, move: move))
        } catch {
            for backend in backends { backend.stop() }
            throw error
        }
        let service = Service(
            configuration: configuration, plugins: plugins.all, backends: backends, catalog: catalog, cache: cache,
            mover: Mover(catalog, logger: logger) { [reloader] in reloader.switchOver($0) },
            loopCount: configuration.loopCount, logger: logger, decoding: try startDecoding(cache),
            reload: { [reloader] options, completion in reloader.reload(options, completion: completion) },
            drop: { [reloader] in reloader.drop($0) })
        service.setLayouts()
        let hasFinished = try serve(service, listening, shutdown)
        guard hasFinished, let last = reloader.finish() else {
            // A backend hangs; waiting for it would hang as well. What was acknowledged is durable.
            logger.critical("not every request in flight could be finished")
            return
        }
        for backend in last.backends { backend.stop() }
    }

    // MARK: Starting

    private func handleSignals() throws(StartFailure) -> Shutdown {
        let shutdown = Shutdown(manager, logger: logger)
        SignalThread.block()
        do throws(ThreadFailure) {
            try SignalThread.start { [reloader] number in
                if number == SIGHUP { reloader.reload() } else { shutdown.begin(number) }
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

    private func openCatalog() throws(StartFailure) -> (CollectionCatalog, LockFile) {
        let directory = configuration.stateDirectory
        do throws(SystemError) {
            try CollectionCatalog.make(directory)
            let lock = try LockFile(of: CollectionCatalog.path(in: directory), usage: "uses \(directory)")
            let catalog = try CollectionCatalog(
                directory: directory, rules: configuration.collections,
                maximumBornByGlob: configuration.limits.collections)
            return (catalog, lock)
        } catch {
            throw stateFailure(error)
        }
    }

    /// Opens every backend. One that is not available now stays down and is retried, one that takes long is not waited
    /// for; one that can never be opened ends the start.
    private func open(_ backends: [Backend]) throws {
        let openings: [BackendFactory.Opening]
        do throws(ThreadFailure) {
            openings = try BackendFactory.open(backends)
        } catch {
            throw StartFailure(.system, "the system has no thread for each backend (errno \(error.code))")
        }
        var diagnostics: [ConfigurationDiagnostic] = []
        for (definition, opening) in zip(configuration.backends, openings) {
            switch opening {
            case .failed(let failure) where failure.isFinal:
                diagnostics.append(configuration.diagnostic(of: failure, opening: definition))
            case .pending: logger.warning("backend \(definition.name) is not open yet; its requests wait")
            case .open, .failed: break
            }
        }
        if !diagnostics.isEmpty { throw InvalidConfiguration(diagnostics) }
    }

    /// Sees that no records are orphaned, and begins the moves that are wanted.
    private func place(_ catalog: CollectionCatalog, _ backends: [Backend], _ options: PlacePlan.Options) throws {
        let places = PlacePlan(configuration, catalog, backends, options)
        let diagnostics = places.diagnostics + places.diagnostics(of: backends)
        if !diagnostics.isEmpty { throw InvalidConfiguration(diagnostics) }
        do throws(SystemError) {
            try places.begin(catalog)
        } catch {
            throw stateFailure(error)
        }
        do throws(SystemError) {
            try catalog.follow(places.rules, maximumBornByGlob: configuration.limits.collections)
        } catch {
            logger.warning("\(error)")
        }
    }

    private func startDecoding(_ cache: RecordCache) throws(StartFailure) -> DecodingThread {
        do throws(ThreadFailure) {
            return try DecodingThread(cache)
        } catch {
            throw StartFailure(.system, "the system has no thread for decoding (errno \(error.code))")
        }
    }

    private func stateFailure(_ error: SystemError) -> StartFailure {
        StartFailure(
            error, of: "state_directory", at: configuration.positions.stateDirectory, in: configuration)
    }

    // MARK: Serving

    /// Serves until the daemon is told to stop; false if a request in flight could not be finished.
    private func serve(_ service: Service, _ listening: Listening, _ shutdown: Shutdown) throws(StartFailure) -> Bool {
        do {
            let interval = manager.watchdogInterval
            let heartbeat = interval.map { $0 / Watchdog.beatsPerInterval }
            let inspector = Inspector()
            let first = try ServiceLoop(service, inspector, number: 0, heartbeatInterval: heartbeat)
            let others = try (1..<service.loopCount).map {
                try LoopThread(service, inspector, number: $0, heartbeatInterval: heartbeat)
            }
            let mailboxes = [first.mailbox] + others.map(\.mailbox)
            try first.listen(at: listening.descriptors, Acceptor(mailboxes, service.sessions, logger: logger))
            let watchdog = Watchdog(manager, [first.heartbeat] + others.map(\.heartbeat))
            if let interval { try watchdog.start(every: interval) }
            defer { watchdog.stop() }
            shutdown.serving(mailboxes)
            manager.ready(service.summary)
            logger.notice("crudd \(CRUDVersion.current) is ready")
            let fixed = FixedSettings(
                socket: listening.isOwn ? configuration.socket : nil, stateDirectory: configuration.stateDirectory,
                loops: configuration.loops)
            try reloader.start(service, mailboxes, fixed: fixed)
            try inspector.start(LoopGroup(mailboxes))
            service.mover.follow(service.backends)
            service.keepCollections()
            let hasFinished = first.run()
            return others.map { $0.join() }.allSatisfy(\.self) && hasFinished
        } catch {
            throw StartFailure(.system, "\(error)")
        }
    }
}

extension Configuration {
    /// How many event loops serve. Half of the processors are the applications', and more than four loops have not been
    /// seen to help.
    fileprivate var loopCount: Int { loops ?? max(1, min(4, sysconf(CInt(_SC_NPROCESSORS_ONLN)) / 2)) }
}
