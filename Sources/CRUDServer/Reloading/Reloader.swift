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
        /// Nil until something is served.
        var serving: Serving?
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
            if state.serving == nil { state.isAwaited = true }
            return state.serving?.service
        }
        service?.control.executor.enqueue("reload") { [self] in reload(Plan.Options(), nil) }
    }

    /// Executes what an administrator asks for; callable on any thread once something is served.
    ///
    /// - Parameter completion: called once, on the executor's thread.
    func execute(_ request: ReloadRequest, completion: @escaping Completion) {
        let service = state.withLock { $0.serving?.service }
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
    func start(_ service: Service, _ loops: LoopGroup, fixed: FixedSettings) throws(ThreadFailure) {
        let isAwaited = state.withLock { state in
            state.serving = Serving(service: service, loops: loops, fixed: fixed)
            return state.isAwaited
        }
        if isAwaited { reload() }
        try service.control.start(loops)
    }

    /// Accepts no request any more, and waits for a change in progress.
    ///
    /// - Returns: what is served at last; nil if the wait took too long.
    func finish() -> Service? {
        guard let control = state.withLock({ $0.serving?.service })?.control else { return nil }
        let hasEnded = control.executor.finish(within: Self.shutdownTimeout)
        control.stop()
        return hasEnded ? state.withLock { $0.serving?.service } : nil
    }

    private func reload(_ options: Plan.Options, _ completion: Completion?) {
        guard let serving = state.withLock({ $0.serving }) else { return }
        manager.reloading()
        do throws(ReloadRefusal) {
            let reload = try reload(from: serving, options)
            let service = reload.service
            state.withLock { $0.serving?.service = service }
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
            manager.ready("\(serving.service.summary); the last reload was refused: \(error.lines[0])")
            completion?(.failure(error.error))
        }
    }

    /// The settings that are in force, as JSON text.
    private var settings: [UInt8] {
        var writer = JSONWriter()
        writer.object { result in
            guard let serving = state.withLock({ $0.serving }) else { return }
            let configuration = serving.service.configuration
            result.member("file", configuration.file)
            result.member("settings", objects: serving.fixed.settings(of: configuration)) { setting, members in
                members.member("key", setting.key)
                members.member("value", setting.value)
                members.member("source", setting.source.rawValue)
            }
        }
        return writer.bytes
    }

    /// Has loops and log follow another level until the next reload.
    private func log(at level: Configuration.LogLevel) throws(CRUDError) -> [UInt8] {
        guard let serving = state.withLock({ $0.serving }) else {
            throw CRUDError(.unavailable, "the daemon is starting")
        }
        let current = serving.service
        let former = current.configuration.logLevel
        let service = Service(
            after: current, configuration: current.configuration.logging(at: level), plugins: current.plugins,
            backends: current.backends)
        serving.loops.serve(service)
        state.withLock { $0.serving?.service = service }
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
        guard let serving = state.withLock({ $0.serving }) else {
            return completion(.failure(CRUDError(.unavailable, "the daemon is starting")))
        }
        let dryRun: DryRun
        do throws(ReloadRefusal) {
            let (configuration, plugins) = try configuration(after: serving.service)
            dryRun = DryRun(of: configuration, after: serving.service, plugins, serving.fixed, options)
        } catch {
            return completion(.failure(error.error))
        }
        guard dryRun.changesFormats else { return completion(.success(dryRun.json)) }
        do throws(ThreadFailure) {
            try Thread(named: "dry run") {
                var dryRun = dryRun
                dryRun.checkFormats(serving.service)
                completion(.success(dryRun.json))
            }.detach()
        } catch {
            completion(.failure(CRUDError(.unavailable, "the system has no thread for the dry run")))
        }
    }

    private func reload(from serving: Serving, _ options: Plan.Options) throws(ReloadRefusal) -> Reload {
        let (configuration, plugins) = try configuration(after: serving.service)
        let reload = try Reload(from: serving, to: configuration, plugins, options)
        do throws(CRUDError) {
            try serving.service.control.execute(reload)
            return reload
        } catch {
            // Backends that were closed have been opened again.
            state.withLock { $0.serving?.service = reload.service }
            throw reload.refusal ?? ReloadRefusal(error)
        }
    }

    private func configuration(after current: Service) throws(ReloadRefusal) -> (Configuration, PluginSet) {
        do throws(InvalidConfiguration) {
            let configuration = try load()
            let plugins = try PluginSet(configuration, loopCount: current.loopCount, logger: current.logger)
            return (configuration, plugins)
        } catch {
            throw ReloadRefusal(error.withPluginErrors(current.logger).diagnostics)
        }
    }
}

/// What is served, by which loops.
struct Serving: Sendable {
    var service: Service
    let loops: LoopGroup
    let fixed: FixedSettings
}

extension Logger.Level {
    /// The levels of the configuration are those of the log.
    init(_ level: Configuration.LogLevel) {
        self = Self(rawValue: level.rawValue) ?? .info
    }
}
