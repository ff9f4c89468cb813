import CRUDConfiguration
import CRUDModel
import CRUDPluginHost
import Logging
import Synchronization

/// Carries out reloads on a thread of its own, one after the other in the order in which they were asked for.
package final class Reloader: Sendable {
    private struct Order: Sendable {
        let force: Bool
        /// Nil for a signal, which nobody waits for.
        let answer: (@Sendable (Result<[String], CRUDError>) -> Void)?
    }

    private struct State {
        var orders: [Order] = []
        var isEnding = false
        /// Set while the thread has nothing to do: what it waits for.
        var idle: Handover<Bool>?
        /// What is served; nil until something is.
        var service: Service?
    }

    private let load: @Sendable () throws(InvalidConfiguration) -> Configuration
    private let manager: ServiceManager
    private let threshold: LogThreshold
    private let logger: Logger
    private let state = Mutex(State())
    private let ended = Handover<Bool>()

    /// How long the end of the daemon waits for a reload that is under way.
    private static let patience = Duration.seconds(10)

    /// - Parameters:
    ///   - threshold: of the log, for its new level.
    ///   - load: reads the configuration anew.
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
        order { orders in
            if orders.allSatisfy({ $0.answer != nil }) { orders.append(Order(force: false, answer: nil)) }
        }
    }

    /// Has the configuration read again; callable on any thread.
    ///
    /// - Parameters:
    ///   - force: whether collections may lose sight of their records.
    ///   - answer: called once, on the reloads' thread, with what has changed; or with why nothing has:
    ///     `invalid_configuration` or `unavailable`.
    func reload(force: Bool, answer: @escaping @Sendable (Result<[String], CRUDError>) -> Void) {
        order { $0.append(Order(force: force, answer: answer)) }
    }

    private func order(_ append: (inout [Order]) -> Void) {
        let idle = state.withLock { state in
            append(&state.orders)
            return state.idle.take()
        }
        idle?.give(true)
    }

    /// The daemon serves from now on, with these loops.
    func start(_ service: Service, _ loops: [Mailbox], fixed: FixedSettings) throws(ThreadFailure) {
        state.withLock { $0.service = service }
        _ = try Thread(named: "reload") { [self] in
            while let order = next() { carryOut(order, loops, fixed) }
            ended.give(true)
        }
    }

    /// Takes nothing up any more, and waits for what is under way.
    ///
    /// - Returns: what is served at last; nil if the wait took too long.
    func finish() -> Service? {
        let idle = state.withLock { state in
            state.isEnding = true
            return state.idle.take()
        }
        idle?.give(true)
        guard ended.wait(atMost: Self.patience) != nil else { return nil }
        return state.withLock { $0.service }
    }

    /// The next order, once there is one; nil at the end.
    private func next() -> Order? {
        while true {
            let idle = Handover<Bool>()
            let order: Order?? = state.withLock { state in
                if state.isEnding { return .some(nil) }
                if !state.orders.isEmpty { return state.orders.removeFirst() }
                state.idle = idle
                return nil
            }
            if let order { return order }
            _ = idle.wait()
        }
    }

    private func carryOut(_ order: Order, _ loops: [Mailbox], _ fixed: FixedSettings) {
        guard let current = state.withLock({ $0.service }) else { return }
        manager.reloading()
        let reload = Reload(current, loops, fixed: fixed, force: order.force)
        let outcome = reload.carryOut(load)
        state.withLock { $0.service = outcome.service }
        switch outcome.result {
        case .success(let changes):
            threshold.level = Logger.Level(outcome.service.configuration.logLevel)
            logger.notice("the configuration was reloaded, \(changes.isEmpty ? "nothing has changed" : "changes:")")
            for change in changes { logger.notice("\(change)") }
            manager.ready(outcome.service.summary)
            order.answer?(.success(changes))
        case .failure(let refusal):
            logger.error("the reload is refused, what was in force stays in force:")
            for line in refusal.lines { logger.error("\(line)") }
            manager.ready("\(outcome.service.summary); the last reload was refused: \(refusal.lines[0])")
            order.answer?(.failure(refusal.error))
        }
    }
}

extension Logger.Level {
    /// The levels of the configuration are those of the log.
    init(_ level: Configuration.LogLevel) {
        self = Self(rawValue: level.rawValue) ?? .info
    }
}
