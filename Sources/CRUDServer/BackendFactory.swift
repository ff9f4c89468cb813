import CRUDConfiguration
import CRUDModel
import CRUDPlacement
import CRUDPluginHost
import CRUDStorage
import CRUDThreads
import Logging

/// Makes the backends of a configuration and opens them.
struct BackendFactory: Sendable {
    let control: PlacementControl
    let cache: RecordCache
    let loopCount: Int
    let logger: Logger

    /// How long the daemon waits for first openings before it serves without those backends. Their requests wait until
    /// they are open, or until their own time is up.
    private static let openingTimeout = Duration.seconds(2)

    /// The outcome of the first attempt to open a backend.
    enum Opening: Sendable {
        case open
        case failed(PluginFailure)
        /// It has not ended yet.
        case pending
    }

    func make(_ definition: BackendConfiguration, _ plugin: Plugin) -> Backend {
        Backend(
            name: definition.name, plugin: plugin, options: definition.options, loopCount: loopCount, cache: cache,
            cachesRecords: definition.cachesRecords, logger: logger
        ) { [control] collection, isNew in
            let place = CollectionPlace(backend: definition.name, format: collection.format)
            return control.admit(collection.name, at: place, isNew: isNew)
        }
    }

    /// Opens backends, all at the same time.
    static func open(_ backends: [Backend]) throws(ThreadFailure) -> [Opening] {
        let openings = backends.map { _ in OneShot<PluginFailure?>() }
        for (backend, opening) in zip(backends, openings) { try backend.start { opening.resolve($0) } }
        let deadline = ContinuousClock.now + openingTimeout
        return openings.map { opening in
            switch opening.wait(atMost: deadline - .now) {
            case .some(.none): .open
            case .some(.some(let failure)): .failed(failure)
            case .none: .pending
            }
        }
    }
}
