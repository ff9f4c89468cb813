package import CRUDConfiguration
import CRUDEventLoop
import CRUDModel
import CRUDPlacement
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

    /// How long the start takes until it is known what is in storages that the catalog does not know, as when it was
    /// lost. For one that takes longer the daemon serves, and refuses to map collections elsewhere.
    private static let firstSurveyTimeout = Duration.seconds(10)
    /// How long the first requests wait for what other programs may have made in storages that the catalog knows; for
    /// one that takes longer they do not.
    private static let surveyTimeout = Duration.milliseconds(100)
    /// How long the start waits for feeds that have to begin anew; a collection whose feed takes longer is served
    /// later.
    private static let feedTimeout = Duration.seconds(2)

    /// - Parameter load: reads the configuration; called again at each reload.
    /// - Throws: what `load` throws.
    package init(
        manager: ServiceManager, load: @escaping @Sendable () throws(InvalidConfiguration) -> Configuration
    ) throws(InvalidConfiguration) {
        configuration = try Self.configuration(load, runsCommands: true)
        self.manager = manager
        let threshold = LogThreshold(Logger.Level(configuration.logLevel))
        logger = Self.logger(threshold)
        reloader = Reloader(manager: manager, threshold: threshold, logger: logger, load: load)
    }

    /// Loads the plugins and has them check their options; no storage is touched.
    ///
    /// - Parameter runsCommands: whether the commands of backends are executed, which can do anything.
    /// - Returns: what was not checked, a line each.
    /// - Throws: `InvalidConfiguration` with every error and its place in the file; ``StartFailure`` where a plugin
    ///   could not be asked, with which a daemon would start all the same.
    package static func check(
        _ load: () throws(InvalidConfiguration) -> Configuration, runsCommands: Bool
    ) throws -> [String] {
        let configuration = try configuration(load, runsCommands: runsCommands)
        let logger = logger(LogThreshold(Logger.Level(configuration.logLevel)))
        let plugins = try PluginSet(
            configuration, loopCount: configuration.loopCount, runsCommands: runsCommands, logger: logger)
        if !plugins.unchecked.isEmpty {
            throw StartFailure(.unavailable, lines: plugins.unchecked.map(\.description))
        }
        return plugins.notRun.map(\.description)
    }

    /// Reads the configuration. Where it has errors, plugins check the rest of it all the same.
    private static func configuration(
        _ load: () throws(InvalidConfiguration) -> Configuration, runsCommands: Bool
    ) throws(InvalidConfiguration) -> Configuration {
        do throws(InvalidConfiguration) {
            return try load()
        } catch {
            throw error.withPluginErrors(runsCommands: runsCommands, logger(LogThreshold(.info)))
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
        let options = Plan.Options(force: force, move: move)
        try refuseWithoutStorage(catalog, plugins, options)
        let control = PlacementControl(catalog, logger: logger)
        AdaptiveSpin.limit = configuration.busyPoll
        let cache = RecordCache(bytes: configuration.cacheBytes)
        let quotas = Quotas()
        let factory = BackendFactory(
            control: control, cache: cache, quotas: quotas, loopCount: configuration.loopCount, logger: logger)
        let backends = try open(plugins, factory, options)
        let service = Service(
            configuration: configuration, plugins: plugins.all, backends: backends, control: control, cache: cache,
            quotas: quotas, loopCount: configuration.loopCount, logger: logger, decoding: try startDecoding(cache),
            reload: { [reloader] request, completion in reloader.execute(request, completion: completion) })
        service.setLayouts()
        let hasFinished = try serve(service, listening, shutdown)
        service.audit.finish()
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

    /// Locks the state directory and reads the catalog, which changes nothing.
    private func openCatalog() throws -> (Catalog, LockFile) {
        let directory = configuration.stateDirectory
        do {
            try StateDirectory.make(directory)
            let lock = try LockFile(of: Catalog.path(in: directory), usage: "uses \(directory)")
            return (try Catalog(directory: directory), lock)
        } catch let error as SystemError {
            throw stateFailure(error)
        } catch {
            throw StartFailure(
                .configuration,
                configuration.diagnostic(at: configuration.positions.stateDirectory, "state_directory: \(error)")
                    .description)
        }
    }

    /// Opens every backend. One that is not available now stays down and is retried, one that takes long is not waited
    /// for; one that can never be opened ends the start, before any storage is made that was not there.
    private func open(_ plugins: PluginSet, _ factory: BackendFactory, _ options: Plan.Options) throws -> [Backend] {
        do {
            var opened = try OpenedBackends(configuration.backends, plugins, factory)
            do {
                try check(opened)
                if !options.force { try refuse(opened.refusals(configuration)) }
                let plan = Plan(
                    configuration, factory.control.catalog.entries, plugins, opened.backends,
                    empty: opened.withoutStorage, options)
                try refuse(configuration.diagnostics(of: plan.refusals))
                try opened.openRest(force: options.force)
                try check(opened)
                try record(plan, opened, factory.control)
                for line in opened.notices { logger.notice("\(line)") }
                for attempt in opened.attempts {
                    guard case .pending = attempt.opening else { continue }
                    logger.warning("backend \(attempt.backend.name) is not open yet; its requests wait")
                }
                return opened.backends
            } catch {
                for backend in opened.backends { backend.stop() }
                throw error
            }
        } catch let error as ThreadFailure {
            throw StartFailure(.system, "the system has no thread for each backend (errno \(error.code))")
        }
    }

    /// Refuses backends that can never be opened.
    private func check(_ opened: OpenedBackends) throws(InvalidConfiguration) {
        try refuse(opened.finalFailures.map { configuration.diagnostic(of: $0.failure, opening: $0.definition) })
    }

    private func refuse(_ diagnostics: [ConfigurationDiagnostic]) throws(InvalidConfiguration) {
        if !diagnostics.isEmpty { throw InvalidConfiguration(diagnostics) }
    }

    /// Refuses what is refused whatever storage has: before any is opened.
    private func refuseWithoutStorage(
        _ catalog: Catalog, _ plugins: PluginSet, _ options: Plan.Options
    ) throws(InvalidConfiguration) {
        let plan = Plan(
            catalog.entries, configuration.collections, backends: Set(configuration.backends.map(\.name)),
            shared: plugins.shared, options)
        let questioned = Set(plan.questions.map(\.name))
        try refuse(configuration.diagnostics(of: plan.refusals.filter { !questioned.contains($0.name) }))
    }

    /// Records what is to become of collections, and which storages there are.
    private func record(_ plan: Plan, _ opened: OpenedBackends, _ control: PlacementControl) throws(StartFailure) {
        let transitions = opened.transitions(plan.transitions)
        do throws(CatalogError) {
            try control.catalog.commit(transitions, storages: opened.storages)
        } catch {
            if transitions.isEmpty {
                logger.warning("cannot remember which storages backends have: \(error.error.message)")
                return
            }
            switch error {
            case .failed(let cause), .blocked(let cause), .inDoubt(let cause): throw stateFailure(cause)
            case .stale, .invalid: throw StartFailure(.system, error.error.message)
            }
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
            service.followPlacements()
            for name in service.control.awaitFeeds(within: Self.feedTimeout) {
                logger.warning("\(PlacementControl.closedText(of: name))")
            }
            // What is not known when the daemon says that it serves might be orphaned by the next start.
            for name in service.control.awaitFirstSurveys(within: Self.firstSurveyTimeout) {
                logger.warning("backend \(name): \(PlacementControl.unsurveyedText)")
            }
            manager.ready(service.summary)
            logger.notice("crudd \(CRUDVersion.current) is ready")
            let fixed = FixedSettings(
                socket: listening.isOwn ? configuration.socket : nil, stateDirectory: configuration.stateDirectory,
                loops: configuration.loops)
            service.control.keepAll()
            service.control.awaitSurveys(within: Self.surveyTimeout)
            let loops = LoopGroup(mailboxes)
            try reloader.start(service, loops, fixed: fixed)
            try inspector.start(loops)
            try service.audit.start(logger)
            try service.quotaMeasuring.start()
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
