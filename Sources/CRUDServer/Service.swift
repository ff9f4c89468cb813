package import CRUDConfiguration
package import CRUDCore
package import CRUDPluginHost
package import Logging

/// What all event loops of a daemon share.
package final class Service: Sendable {
    let configuration: Configuration
    let plugins: [Plugin]
    let backends: [Backend]
    let catalog: CollectionCatalog
    let sessions: SessionCensus
    /// How many event loops there are.
    let loopCount: Int
    let logger: Logger
    let started = ContinuousClock.now

    package init(
        configuration: Configuration, plugins: [Plugin], backends: [Backend], catalog: CollectionCatalog,
        loopCount: Int,
        logger: Logger
    ) {
        self.configuration = configuration
        self.plugins = plugins
        self.backends = backends
        self.catalog = catalog
        self.loopCount = loopCount
        self.logger = logger
        sessions = SessionCensus(limits: configuration.limits)
    }
}
