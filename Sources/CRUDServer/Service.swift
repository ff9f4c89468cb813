import CRUDConfiguration
import CRUDModel
import CRUDPluginHost
import CRUDStorage
import Logging

/// What all event loops of a daemon share, under one configuration. A reload makes another one, which takes its place.
final class Service: Sendable {
    let configuration: Configuration
    let plugins: [Plugin]
    /// In the order of the configuration.
    let backends: [Backend]
    let catalog: CollectionCatalog
    let cache: RecordCache
    /// The rules of the configuration, with the collections that are being moved where they are.
    let rules: CollectionRules
    let mover: Mover
    let sessions: SessionLimiter
    let decoding: DecodingThread
    let slowLog: SlowLog
    let reload: Reloading
    /// Executes a request to drop a collection, on another thread; callable on any thread.
    let drop: @Sendable (DropRequest) -> Void
    let loopCount: Int
    let logger: Logger
    let started: ContinuousClock.Instant

    /// Has the configuration read again; callable on any thread.
    ///
    /// Its parameters are what to do with records whose place changes, and what is called once, on another thread, with
    /// what has changed, or with why nothing has: `invalid_configuration` or `unavailable`.
    typealias Reloading =
        @Sendable (
            PlacePlan.Options, @escaping @Sendable (Result<ReloadChanges, CRUDError>) -> Void
        ) -> Void

    init(
        configuration: Configuration, plugins: [Plugin], backends: [Backend], catalog: CollectionCatalog,
        cache: RecordCache, mover: Mover, loopCount: Int, logger: Logger, decoding: DecodingThread,
        reload: @escaping Reloading, drop: @escaping @Sendable (DropRequest) -> Void
    ) {
        self.configuration = configuration
        self.plugins = plugins
        self.backends = backends
        self.catalog = catalog
        self.cache = cache
        rules = configuration.collections.placing(catalog.placesOfMoving)
        self.mover = mover
        self.decoding = decoding
        slowLog = SlowLog()
        self.reload = reload
        self.drop = drop
        self.loopCount = loopCount
        self.logger = logger
        started = .now
        sessions = SessionLimiter(limits: configuration.limits)
    }

    /// What comes after `service`: another configuration, the same daemon.
    init(after service: Service, configuration: Configuration, plugins: [Plugin], backends: [Backend]) {
        self.configuration = configuration
        self.plugins = plugins
        self.backends = backends
        catalog = service.catalog
        cache = service.cache
        rules = configuration.collections.placing(catalog.placesOfMoving)
        mover = service.mover
        sessions = service.sessions
        decoding = service.decoding
        slowLog = service.slowLog
        reload = service.reload
        drop = service.drop
        loopCount = service.loopCount
        logger = service.logger
        started = service.started
    }

    /// What comes after `service` when collections have changed their places, and nothing else.
    convenience init(after service: Service) {
        self.init(
            after: service, configuration: service.configuration, plugins: service.plugins,
            backends: service.backends)
    }

    /// Has the backends keep for each collection what the rules say. To be called before anybody serves by these rules.
    func setLayouts() {
        for backend in backends { backend.follow(rules) }
    }

    /// Has the backends look after the collections that there are, be they used or not.
    func keepCollections() {
        var kept: [String: [(name: [UInt8], format: CollectionRule.Format)]] = [:]
        for entry in catalog.entries {
            guard let rule = rules.rule(for: entry.name.span) else { continue }
            kept[rule.backend, default: []].append((entry.name, rule.format))
        }
        for backend in backends {
            backend.keep((kept[backend.name] ?? []).map { backend.collection($0.name, $0.format) })
        }
    }

    /// In a few words, for the service manager.
    var summary: String { "Serving \(backends.count) backend\(backends.count == 1 ? "" : "s")" }
}
