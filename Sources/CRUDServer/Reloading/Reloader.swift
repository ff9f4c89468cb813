import CRUDConfiguration
import CRUDJSON
import CRUDModel
import CRUDPlacement
import CRUDStorage
import CRUDThreads
import Logging
import Synchronization

/// Has the configuration read again where a signal or an administrator asks for it, on the executor's thread.
final class Reloader: Sendable {
    /// Gets the result as JSON text, or why there is none: `invalid_configuration` or `unavailable`.
    typealias Completion = @Sendable (Result<[UInt8], CRUDError>) -> Void

    private struct State {
        /// What is served; nil until something is.
        var service: Service?
        var fixed: FixedSettings?
        /// Whether a signal came before anything was served.
        var isAwaited = false
    }

    private let load: @Sendable () throws(InvalidConfiguration) -> Configuration
    private let manager: ServiceManager
    private let threshold: LogThreshold
    private let logger: Logger
    private let state = Mutex(State())

    /// How long the end of the daemon waits for a change in progress.
    private static let shutdownTimeout = Duration.seconds(10)

    /// - Parameters:
    ///   - threshold: of the log, which follows the configuration.
    ///   - load: reads the configuration.
    init(
        manager: ServiceManager, threshold: LogThreshold, logger: Logger,
        load: @escaping @Sendable () throws(InvalidConfiguration) -> Configuration
    ) {
        self.manager = manager
        self.threshold = threshold
        self.logger = logger
        self.load = load
    }

    /// Has the configuration read again, for a signal; callable on any thread, also before anything is served. Signals
    /// that come before the first of them is acted upon count as one.
    func reload() {
        let service = state.withLock { state in
            if state.service == nil { state.isAwaited = true }
            return state.service
        }
        service?.control.executor.enqueue("reload") { [self] in reload(Plan.Options(), nil) }
    }

    /// Executes what an administrator asks for; callable on any thread once something is served.
    ///
    /// - Parameter completion: called once, on the executor's thread.
    func execute(_ request: ReloadRequest, completion: @escaping Completion) {
        let service = state.withLock { $0.service }
        service?.control.executor.enqueue { [self] in
            switch request {
            case .reload(let options): reload(options, completion)
            case .dryRun(let options): dryRun(options, completion)
            case .settings: completion(.success(settings))
            case .logLevel(let level): completion(Result { () throws(CRUDError) in try log(at: level) })
            }
        }
    }

    /// The daemon serves from now on, with these loops.
    func start(_ service: Service, _ loops: [Mailbox], fixed: FixedSettings) throws(ThreadFailure) {
        let isAwaited = state.withLock { state in
            state.service = service
            state.fixed = fixed
            return state.isAwaited
        }
        if isAwaited { reload() }
        try service.control.start(LoopGroup(loops))
    }

    /// Accepts no request any more, and waits for a change in progress.
    ///
    /// - Returns: what is served at last; nil if the wait took too long.
    func finish() -> Service? {
        guard let control = state.withLock({ $0.service })?.control else { return nil }
        let hasEnded = control.executor.finish(within: Self.shutdownTimeout)
        control.stop()
        return hasEnded ? state.withLock { $0.service } : nil
    }

    private func reload(_ options: Plan.Options, _ completion: Completion?) {
        guard case (let current?, let fixed?) = state.withLock({ ($0.service, $0.fixed) }) else { return }
        manager.reloading()
        do throws(ReloadRefusal) {
            let reload = try reload(from: current, fixed, options)
            let service = reload.service
            state.withLock { $0.service = service }
            // What is changed is logged by the level from before as well: it may be that which is changed.
            let level = Logger.Level(service.configuration.logLevel)
            threshold.level = min(threshold.level, level)
            let changes = reload.changes
            let lines = changes.lines
            logger.notice("the configuration was reloaded, \(lines.isEmpty ? "nothing has changed" : "changes:")")
            for line in lines { logger.notice("\(line)") }
            for line in changes.gains { logger.warning("\(line)") }
            threshold.level = level
            manager.ready(service.summary)
            completion?(.success(changes.json))
        } catch {
            logger.error("the reload is refused, the old configuration stays in force:")
            for line in error.lines { logger.error("\(line)") }
            manager.ready("\(current.summary); the last reload was refused: \(error.lines[0])")
            completion?(.failure(error.error))
        }
    }

    /// The settings that are in force, as JSON text.
    private var settings: [UInt8] {
        var writer = JSONWriter()
        writer.object { result in
            guard case (let service?, let fixed?) = state.withLock({ ($0.service, $0.fixed) }) else { return }
            result.member("file", service.configuration.file)
            result.member("settings", objects: fixed.settings(of: service.configuration)) { setting, members in
                members.member("key", setting.key)
                members.member("value", setting.value)
                members.member("source", setting.source.rawValue)
            }
        }
        return writer.bytes
    }

    /// Has loops and log follow another level until the next reload.
    private func log(at level: Configuration.LogLevel) throws(CRUDError) -> [UInt8] {
        guard let current = state.withLock({ $0.service }),
            let loops = current.control.servingLoops as? LoopGroup
        else { throw CRUDError(.unavailable, "the daemon is starting") }
        let former = current.configuration.logLevel
        let service = Service(
            after: current, configuration: current.configuration.logging(at: level), plugins: current.plugins,
            backends: current.backends)
        loops.serve(service)
        state.withLock { $0.service = service }
        threshold.level = min(threshold.level, Logger.Level(level))
        defer { threshold.level = Logger.Level(level) }
        logger.notice("log.level: from \(former.rawValue) to \(level.rawValue), until the next reload")
        var writer = JSONWriter()
        writer.object { result in
            result.member("level", level.rawValue)
            result.member("former", former.rawValue)
        }
        return writer.bytes
    }

    /// Finds out what a reload would change. Records are read on a thread of its own, for which no other change waits.
    ///
    /// - Parameter completion: gets that as JSON text.
    private func dryRun(_ options: Plan.Options, _ completion: @escaping Completion) {
        guard case (let current?, let fixed?) = state.withLock({ ($0.service, $0.fixed) }) else {
            return completion(.failure(CRUDError(.unavailable, "the daemon is starting")))
        }
        let dryRun: DryRun
        do throws(ReloadRefusal) {
            let (configuration, plugins) = try configuration(current)
            dryRun = DryRun(of: configuration, after: current, plugins, fixed, options)
        } catch {
            return completion(.failure(error.error))
        }
        guard dryRun.changesFormats else { return completion(.success(dryRun.json)) }
        do throws(ThreadFailure) {
            try Thread(named: "dry run") {
                var dryRun = dryRun
                dryRun.checkFormats(current)
                completion(.success(dryRun.json))
            }.detach()
        } catch {
            completion(.failure(CRUDError(.unavailable, "the system has no thread for the dry run")))
        }
    }

    private func reload(
        from current: Service, _ fixed: FixedSettings, _ options: Plan.Options
    ) throws(ReloadRefusal) -> Reload {
        let (configuration, plugins) = try configuration(current)
        let reload = try Reload(from: current, to: configuration, plugins, fixed, options)
        do throws(CRUDError) {
            try current.control.execute(reload)
            return reload
        } catch {
            // Backends that were closed have been opened again.
            state.withLock { $0.service = reload.service }
            throw reload.refusal ?? ReloadRefusal(error)
        }
    }

    private func configuration(_ current: Service) throws(ReloadRefusal) -> (Configuration, PluginSet) {
        do throws(InvalidConfiguration) {
            let configuration = try load()
            let plugins = try PluginSet(configuration, loopCount: current.loopCount, logger: current.logger)
            return (configuration, plugins)
        } catch {
            throw ReloadRefusal(error.withPluginErrors(current.logger).diagnostics)
        }
    }
}

extension Logger.Level {
    /// The levels of the configuration are those of the log.
    init(_ level: Configuration.LogLevel) {
        self = Self(rawValue: level.rawValue) ?? .info
    }
}
