import CRUDConfiguration
import CRUDCore
import CRUDPluginHost
import Logging

/// What all event loops of a daemon share, under one configuration. A reload makes another one, which takes its place.
package final class Service: Sendable {
    let configuration: Configuration
    let plugins: [Plugin]
    /// In the order of the configuration.
    let backends: [Backend]
    let catalog: CollectionCatalog
    let sessions: SessionCensus
    let reloader: Reloader
    /// How many event loops there are.
    let loopCount: Int
    let logger: Logger
    let started: ContinuousClock.Instant

    init(
        configuration: Configuration, plugins: [Plugin], backends: [Backend], catalog: CollectionCatalog,
        reloader: Reloader, loopCount: Int, logger: Logger
    ) {
        self.configuration = configuration
        self.plugins = plugins
        self.backends = backends
        self.catalog = catalog
        self.reloader = reloader
        self.loopCount = loopCount
        self.logger = logger
        started = .now
        sessions = SessionCensus(limits: configuration.limits)
    }

    /// What comes after `service`: another configuration, the same daemon.
    init(after service: Service, configuration: Configuration, plugins: [Plugin], backends: [Backend]) {
        self.configuration = configuration
        self.plugins = plugins
        self.backends = backends
        catalog = service.catalog
        sessions = service.sessions
        reloader = service.reloader
        loopCount = service.loopCount
        logger = service.logger
        started = service.started
    }

    /// In a few words, for the service manager.
    var summary: String { "Serving \(backends.count) backend\(backends.count == 1 ? "" : "s")" }
}
