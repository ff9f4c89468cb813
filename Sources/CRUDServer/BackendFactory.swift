import CRUDConfiguration
import CRUDCore
import CRUDPluginHost
import Logging

/// Makes the backends of a configuration and opens them.
struct BackendFactory: Sendable {
    let catalog: CollectionCatalog
    let loopCount: Int
    let logger: Logger

    /// How long the daemon waits for first openings before it serves without those backends. What is asked of them waits
    /// until they are open, or until its own time is up.
    private static let patience = Duration.seconds(2)

    /// What the first try to open a backend came to.
    enum Opening: Sendable {
        case open
        case failed(PluginFailure)
        /// It takes its time, or hangs.
        case undecided
    }

    func make(_ definition: BackendConfiguration, _ plugin: Plugin) -> Backend {
        Backend(
            name: definition.name, plugin: plugin, options: definition.options, loopCount: loopCount, logger: logger
        ) { [catalog] collection in
            catalog.admit(.init(name: collection.name, backend: definition.name, format: collection.format))
        }
    }

    /// Opens backends, all at the same time.
    static func open(_ backends: [Backend]) throws(ThreadFailure) -> [Opening] {
        let openings = backends.map { _ in Handover<PluginFailure?>() }
        for (backend, opening) in zip(backends, openings) { try backend.start { opening.give($0) } }
        let deadline = ContinuousClock.now + patience
        return openings.map { opening in
            switch opening.wait(atMost: deadline - .now) {
            case .some(.none): .open
            case .some(.some(let failure)): .failed(failure)
            case .none: .undecided
            }
        }
    }
}
