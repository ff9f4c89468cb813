import CRUDConfiguration
import CRUDModel
import CRUDPlacement
import CRUDPluginHost
import CRUDStorage
import Logging

/// What all event loops of a daemon share, under one configuration. A reload makes another one, which takes its place.
final class Service: Sendable {
    let configuration: Configuration
    let plugins: [Plugin]
    /// In the order of the configuration.
    let backends: [Backend]
    /// Knows where collections are, and changes that.
    let control: PlacementControl
    let cache: RecordCache
    let sessions: SessionLimiter
    let rates: RequestRates
    let quotas: Quotas
    let quotaMeasuring: QuotaMeasuring
    let decoding: DecodingThread
    let slowLog: SlowLog
    let audit: AuditTrail
    let reload: Reloading
    let loopCount: Int
    let logger: Logger
    let started: ContinuousClock.Instant

    /// Has the configuration read again; callable on any thread.
    ///
    /// Its parameters are what is asked for, and what is called once, on another thread, with the result as JSON text;
    /// or with why nothing has changed: `invalid_configuration` or `unavailable`.
    typealias Reloading =
        @Sendable (ReloadRequest, @escaping @Sendable (Result<[UInt8], CRUDError>) -> Void) -> Void

    init(
        configuration: Configuration, plugins: [Plugin], backends: [Backend], control: PlacementControl,
        cache: RecordCache, quotas: Quotas, loopCount: Int, logger: Logger, decoding: DecodingThread,
        reload: @escaping Reloading
    ) {
        self.configuration = configuration
        self.plugins = plugins
        self.backends = backends
        self.control = control
        self.cache = cache
        self.decoding = decoding
        slowLog = SlowLog()
        audit = AuditTrail()
        self.reload = reload
        self.loopCount = loopCount
        self.logger = logger
        started = .now
        sessions = SessionLimiter(limits: configuration.limits)
        rates = RequestRates()
        self.quotas = quotas
        quotaMeasuring = QuotaMeasuring(quotas, control)
    }

    /// What comes after `service`: another configuration, the same daemon.
    init(after service: Service, configuration: Configuration, plugins: [Plugin], backends: [Backend]) {
        self.configuration = configuration
        self.plugins = plugins
        self.backends = backends
        control = service.control
        cache = service.cache
        sessions = service.sessions
        rates = service.rates
        quotas = service.quotas
        quotaMeasuring = service.quotaMeasuring
        decoding = service.decoding
        slowLog = service.slowLog
        audit = service.audit
        reload = service.reload
        loopCount = service.loopCount
        logger = service.logger
        started = service.started
    }

    /// The rules of the configuration, which say where collections are wanted.
    var rules: CollectionRules { configuration.collections }

    /// Has the backends keep for each collection what the rules say. To be called before anybody serves by these rules.
    func setLayouts() {
        for backend in backends { backend.follow(rules) }
    }

    /// Has placements and quotas follow the configuration from now on.
    ///
    /// - Parameter retriesFailed: whether acts that have failed begin again.
    func followPlacements(retriesFailed: Bool = false) {
        quotaMeasuring.follow(configuration.access)
        control.follow(
            backends, rules, maximumByPattern: configuration.limits.collections, retriesFailed: retriesFailed)
    }

    /// In a few words, for the service manager.
    var summary: String { "Serving \(backends.count) backend\(backends.count == 1 ? "" : "s")" }
}
