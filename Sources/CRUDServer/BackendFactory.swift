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
    let quotas: Quotas
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

    /// - Parameter expected: the storage that has to be there.
    func make(_ definition: BackendConfiguration, _ plugin: Plugin, _ expected: ExpectedStorage) -> Backend {
        let location = plugin.storageOption.flatMap { definition.text(ofOption: $0) }
        return Backend(
            name: definition.name, plugin: plugin, options: definition.options, loopCount: loopCount, cache: cache,
            cachesRecords: definition.cachesRecords, expectedStorage: expected,
            storageLocation: location.map { String(decoding: $0, as: UTF8.self) }, logger: logger,
            opened: { [control] in control.noteStorage(of: definition.name) },
            admission: { [control, quotas] collection, isNew, creator in
                if let refusal = quotas.refusal(ofCollectionBy: creator) { return refusal }
                let place = CollectionPlace(backend: definition.name, format: collection.format)
                return control.admit(collection.name, at: place, isNew: isNew, by: creator)
            },
            creationCheck: { [control] collections, creator in
                control.catalog.refusal(of: collections.map(\.name), by: creator)
            },
            adoption: Adoption(
                format: { [control] name in control.formatToAdopt(name, in: definition.name) },
                adopt: { [control] found in control.adopt(found, in: definition.name) },
                isComplete: { [control] names in control.noteSurvey(of: definition.name, names) }))
    }

    /// The storage of a backend in which the catalog has collections; nil: it has none there, or does not know it yet.
    func knownStorage(of backend: String) -> ExpectedStorage? {
        let catalog = control.catalog
        guard let storage = catalog.storage(of: backend), catalog.isUsing(backend),
            let identity = StorageIdentity(storage.identity)
        else { return nil }
        return .one(identity)
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
