import CRUDConfiguration
import CRUDModel
import CRUDPlacement
import CRUDPluginHost
import CRUDStorage
import CRUDThreads

/// Backends of a configuration that is not in force yet, opened so that nothing is made: those whose storage is not
/// there wait until it is certain that they are to have one.
///
/// One check finds a mistyped path, a file that was lost, and a backend that has become another storage under its old
/// name: where the catalog has collections in a storage, the backend has to find that one. A restored backup is it.
struct OpenedBackends {
    private(set) var attempts: [Attempt]
    /// Those that have another storage than the one in which the catalog has collections, by the administrator's word.
    private var replaced: Set<String> = []
    private let factory: BackendFactory

    struct Attempt {
        let definition: BackendConfiguration
        var backend: Backend
        var opening: BackendFactory.Opening

        /// Why the storage is not what it has to be.
        var storageFailure: PluginFailure? {
            if case .failed(let failure) = opening, failure.isOfStorage { failure } else { nil }
        }
    }

    init(
        _ definitions: [BackendConfiguration], _ plugins: PluginSet, _ factory: BackendFactory
    ) throws(ThreadFailure) {
        self.factory = factory
        let made = definitions.compactMap { definition in
            plugins[definition].map { plugin in
                (definition, factory.make(definition, plugin, factory.knownStorage(of: definition.name) ?? .any))
            }
        }
        let openings = try BackendFactory.open(made.map(\.1))
        attempts = zip(made, openings).map { Attempt(definition: $0.0, backend: $0.1, opening: $1) }
    }

    var backends: [Backend] { attempts.map(\.backend) }

    /// Those that can never be opened.
    var finalFailures: [(definition: BackendConfiguration, failure: PluginFailure)] {
        attempts.compactMap { attempt in
            guard case .failed(let failure) = attempt.opening, failure.isFinal else { return nil }
            return (attempt.definition, failure)
        }
    }

    /// The names of those that have no storage, or another one, so that nothing of the collections is there.
    var withoutStorage: Set<String> { Set(attempts.filter { $0.storageFailure != nil }.map(\.backend.name)) }

    private var catalog: Catalog { factory.control.catalog }

    /// Those that have not the storage in which the catalog has collections.
    private var others: [Attempt] { attempts.filter { $0.storageFailure != nil && expects($0.backend.name) } }

    private func expects(_ backend: String) -> Bool { catalog.storage(of: backend) != nil && catalog.isUsing(backend) }

    /// An error for each of those.
    func refusals(_ configuration: Configuration) -> [ConfigurationDiagnostic] {
        others.compactMap { attempt in
            let name = attempt.backend.name
            guard let failure = attempt.storageFailure, let known = catalog.storage(of: name) else { return nil }
            let count = catalog.entries(in: name).count
            let location = known.location.map { " in \($0)" } ?? ""
            let option = attempt.backend.plugin.storageOption ?? ""
            return configuration.diagnostic(
                at: attempt.definition.position(ofOption: option),
                "backend \(name): the catalog has \(count) collection\(count == 1 ? "" : "s") in its storage "
                    + "\(known.identity)\(location), but \(failure.message); correct that, restore the storage, or "
                    + "give another one a name of its own, so that --move can move them there; --force serves without "
                    + "those records all the same")
        }
    }

    /// Opens those whose storage may be made.
    ///
    /// - Parameter force: whether that concerns those too that have not the storage in which there are collections.
    mutating func openRest(force: Bool) throws(ThreadFailure) {
        if force { replaced = Set(others.map(\.backend.name)) }
        let rest = attempts.indices.filter { attempts[$0].storageFailure != nil }
        for index in rest {
            let (definition, former) = (attempts[index].definition, attempts[index].backend)
            former.stop()
            attempts[index].backend = factory.make(definition, former.plugin, .mayBeNew)
        }
        for attempt in attempts { attempt.backend.allowNewStorage() }
        if rest.isEmpty { return }
        let openings = try BackendFactory.open(rest.map { attempts[$0].backend })
        for (index, opening) in zip(rest, openings) { attempts[index].opening = opening }
    }

    /// What an administrator has to know of those that were replaced.
    var notices: [String] {
        replaced.sorted().map { "backend \($0): another storage is served now, as --force was given" }
    }

    // MARK: What the catalog gets to know

    /// The storages that it does not know.
    var storages: [String: CatalogStorage] {
        var storages: [String: CatalogStorage] = [:]
        for backend in backends {
            let known = catalog.storage(of: backend.name)
            let found = CatalogStorage(of: backend) ?? (replaced.contains(backend.name) ? .forgotten : known)
            if let news = found.flatMap({ catalog.news(of: $0, of: backend.name) }) { storages[backend.name] = news }
        }
        return storages
    }

    /// Transitions, and those of collections of which something was in a storage that is another one now.
    func transitions(_ planned: [Catalog.Transition]) -> [Catalog.Transition] {
        var transitions = Dictionary(uniqueKeysWithValues: planned.map { ($0.name, $0) })
        for backend in replaced {
            for (name, entry) in catalog.entries(in: backend) {
                let placement = transitions[name]?.placement ?? entry.placement
                guard case .to(let next) = placement.next(.leave(backend: backend)) else { continue }
                transitions[name] = Catalog.Transition(name, from: entry, to: next)
            }
        }
        return transitions.values.sorted { $0.name.lexicographicallyPrecedes($1.name) }
    }
}
