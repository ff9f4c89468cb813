import CRUDConfiguration
import CRUDModel
import CRUDStorage
import CRUDThreads
import Logging
import Synchronization

/// Executes what changes the collections that all event loops serve, reloads and drops of collections, on a thread of
/// its own: one after another in the order in which they were requested.
final class Reloader: Sendable {
    private enum Request: Sendable {
        /// The completion is nil for a signal, which nobody waits for.
        case reload(PlacePlan.Options, Completion?)
        case drop(DropRequest)
        case switchOver(SwitchRequest)

        var isSignal: Bool { if case .reload(_, nil) = self { true } else { false } }
    }

    /// Gets what has changed; or why nothing has: `invalid_configuration` or `unavailable`.
    typealias Completion = @Sendable (Result<ReloadChanges, CRUDError>) -> Void

    private struct State {
        var requests: [Request] = []
        var isEnding = false
        /// Set while the thread has nothing to do: what it waits for.
        var idle: OneShot<Bool>?
        /// What is served; nil until something is.
        var service: Service?
    }

    private let load: @Sendable () throws(InvalidConfiguration) -> Configuration
    private let manager: ServiceManager
    private let threshold: LogThreshold
    private let logger: Logger
    private let state = Mutex(State())
    private let ended = OneShot<Bool>()

    /// How long the end of the daemon waits for a reload in progress.
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
        enqueue { requests in
            if !requests.contains(where: \.isSignal) { requests.append(.reload(PlacePlan.Options(), nil)) }
        }
    }

    /// Has the configuration read again; callable on any thread.
    ///
    /// - Parameters:
    ///   - options: what to do with records whose place changes.
    ///   - completion: called once, on the reloader's thread.
    func reload(_ options: PlacePlan.Options, completion: @escaping Completion) {
        enqueue { $0.append(.reload(options, completion)) }
    }

    /// Has a collection switched to the place that it is being moved to; callable on any thread.
    func switchOver(_ request: SwitchRequest) {
        enqueue { $0.append(.switchOver(request)) }
    }

    /// Has a collection dropped; callable on any thread.
    func drop(_ request: DropRequest) {
        enqueue { $0.append(.drop(request)) }
    }

    private func enqueue(_ append: (inout [Request]) -> Void) {
        let idle = state.withLock { state in
            append(&state.requests)
            return state.idle.take()
        }
        idle?.resolve(true)
    }

    /// The daemon serves from now on, with these loops.
    func start(_ service: Service, _ loops: [Mailbox], fixed: FixedSettings) throws(ThreadFailure) {
        state.withLock { $0.service = service }
        let loops = LoopGroup(loops)
        _ = try Thread(named: "reload") { [self] in
            while let request = next() { execute(request, loops, fixed) }
            service.mover.stop()
            ended.resolve(true)
        }
    }

    /// Accepts no request any more, and waits for a reload in progress.
    ///
    /// - Returns: what is served at last; nil if the wait took too long.
    func finish() -> Service? {
        let idle = state.withLock { state in
            state.isEnding = true
            return state.idle.take()
        }
        idle?.resolve(true)
        guard ended.wait(atMost: Self.shutdownTimeout) != nil else { return nil }
        return state.withLock { $0.service }
    }

    /// The next request, once there is one; nil at the end.
    private func next() -> Request? {
        while true {
            let idle = OneShot<Bool>()
            let request: Request?? = state.withLock { state in
                if state.isEnding { return .some(nil) }
                if !state.requests.isEmpty { return state.requests.removeFirst() }
                state.idle = idle
                return nil
            }
            if let request { return request }
            _ = idle.wait()
        }
    }

    private func execute(_ request: Request, _ loops: LoopGroup, _ fixed: FixedSettings) {
        guard let current = state.withLock({ $0.service }) else { return }
        switch request {
        case .reload(let options, let completion):
            reload(current, loops, fixed, options, completion)
        case .drop(let request):
            guard request.begin() else { return }
            let drop = CollectionDrop(of: request.collection, from: current, loops)
            let outcome = Result { () throws(CRUDError) in try drop.execute(request) }
            // Dropped in the middle of its move, a collection is where the configuration has it.
            serve(Service(after: current), loops)
            request.end(outcome)
        case .switchOver(let request):
            guard request.begin() else { return }
            let outcome = Result { () throws(CRUDError) in
                try CollectionSwitch(of: request.move, from: current, loops).execute()
            }
            serve(Service(after: current), loops)
            request.end(outcome)
        }
    }

    /// Has the loops serve collections from where they are now, and resume the requests that have waited.
    private func serve(_ service: Service, _ loops: LoopGroup) {
        state.withLock { $0.service = service }
        loops.serve(service)
        service.keepCollections()
    }

    private func reload(
        _ current: Service, _ loops: LoopGroup, _ fixed: FixedSettings, _ options: PlacePlan.Options,
        _ completion: Completion?
    ) {
        manager.reloading()
        let outcome = Reload(current, loops, fixed: fixed, options).execute(load)
        state.withLock { $0.service = outcome.service }
        switch outcome.result {
        case .success(let changes):
            outcome.service.keepCollections()
            threshold.level = Logger.Level(outcome.service.configuration.logLevel)
            let lines = changes.lines
            logger.notice("the configuration was reloaded, \(lines.isEmpty ? "nothing has changed" : "changes:")")
            for line in lines { logger.notice("\(line)") }
            manager.ready(outcome.service.summary)
            completion?(.success(changes))
        case .failure(let refusal):
            logger.error("the reload is refused, the old configuration stays in force:")
            for line in refusal.lines { logger.error("\(line)") }
            manager.ready("\(outcome.service.summary); the last reload was refused: \(refusal.lines[0])")
            completion?(.failure(refusal.error))
        }
    }
}

extension Logger.Level {
    /// The levels of the configuration are those of the log.
    init(_ level: Configuration.LogLevel) {
        self = Self(rawValue: level.rawValue) ?? .info
    }
}
