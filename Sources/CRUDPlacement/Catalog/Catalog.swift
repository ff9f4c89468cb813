package import CRUDModel
package import CRUDStorage
import Glibc
import Synchronization

/// Where the records of all collections are, durably: the one truth of that.
///
/// A change is one record of the file (``CatalogFile``), whatever number of collections it is of, and is based on
/// versions of their entries: where one of them is not the current one any more, nothing changes. Versions, not values:
/// an entry that is equal to an earlier one is not the same.
///
/// One writer at a time; readers do not wait for it.
package final class Catalog: Sendable {
    package struct Entry: Sendable, Equatable {
        package var placement: Placement
        /// Higher than that of any earlier entry; 0 where the catalog does not know the collection.
        package var version: UInt64

        package static let none = Entry(placement: .none, version: 0)
    }

    /// What is to become of one collection.
    package struct Transition: Sendable, Equatable {
        package var name: [UInt8]
        /// The version of the entry on which that is based.
        package var version: UInt64
        package var placement: Placement

        package init(_ name: [UInt8], from entry: Entry, to placement: Placement) {
            self.name = name
            version = entry.version
            self.placement = placement
        }
    }

    private struct State {
        var entries: [[UInt8]: Entry] = [:]
        var storages: [String: CatalogStorage] = [:]
        var names = CollectionNames()
        /// How many collections each user owns, of those that have a place.
        var owned: [UInt32: Int] = [:]
        /// Those that are not at rest.
        var restless: Set<[UInt8]> = []
        var lastVersion: UInt64 = 0
        /// The collections of a record of which it is not known whether a start will find it; empty: there is none.
        var doubted: Set<[UInt8]> = []
        /// Why that is so.
        var doubtReason: String?

        var contents: CatalogContents {
            CatalogContents(placements: entries.mapValues(\.placement), storages: storages)
        }

        mutating func apply(_ record: CatalogRecord) {
            lastVersion += 1
            for (name, placement) in record.collections { set(name, placement) }
            for (backend, storage) in record.storages { storages[backend] = storage.isNothing ? nil : storage }
        }

        mutating func set(_ name: [UInt8], _ placement: Placement) {
            let former = entries[name]?.placement
            let hasMoved = former?.authority != placement.authority
            count(former, -1)
            count(placement, 1)
            entries[name] = placement.isNothing ? nil : Entry(placement: placement, version: lastVersion)
            if hasMoved { names.set(name, exists: placement.authority != nil) }
            if placement.isAtRest { restless.remove(name) } else { restless.insert(name) }
        }

        mutating func count(_ placement: Placement?, _ number: Int) {
            guard let placement, placement.authority != nil, let owner = placement.owner else { return }
            let count = owned[owner, default: 0] + number
            owned[owner] = count == 0 ? nil : count
        }

        /// Why collections must not be created; nil: they may.
        func refusal(of names: [[UInt8]], by creator: CollectionCreator?) -> CRUDError? {
            let names = names.filter { entries[$0]?.placement.authority == nil }
            guard !names.isEmpty else { return nil }
            if let refusal = self.names.refusal(of: names) { return refusal }
            guard let creator, let maximum = creator.maximumCollections,
                owned[creator.uid, default: 0] > maximum - names.count
            else { return nil }
            return CRUDError(
                .limitExceeded,
                "user \(creator.uid) may own \(maximum) collections by the `limits` of its access rule, and owns "
                    + "\(owned[creator.uid, default: 0]); have one dropped, or the limit raised",
                details: .init(limit: "collections", maximum: maximum))
        }
    }

    // Held while a record is written and synced, which may take long.
    private let file: Mutex<CatalogFile>
    /// Never held for long: event loops ask too.
    private let state: Mutex<State>

    /// Reads the catalog in a directory, which need not be there, and writes nothing.
    ///
    /// - Throws: `SystemError` or ``CatalogDamage``.
    package init(directory: String, calls: FileCalls = FileCalls()) throws {
        let (file, contents) = try CatalogFile.open(in: directory, calls)
        var state = State()
        state.lastVersion = 1
        state.entries = contents.placements.mapValues { Entry(placement: $0, version: 1) }
        state.names = CollectionNames(contents.placements.filter { $0.value.authority != nil }.keys)
        state.restless = Set(contents.placements.filter { !$0.value.isAtRest }.keys)
        state.storages = contents.storages
        for placement in contents.placements.values { state.count(placement, 1) }
        self.file = Mutex(file)
        self.state = Mutex(state)
    }

    /// The path of its file.
    package static func path(in directory: String) -> String { CatalogFile.path(in: directory) }

    // MARK: Reading

    package func entry(_ name: [UInt8]) -> Entry { state.withLock { $0.entries[name] ?? .none } }

    /// Every collection that is remembered, in no particular order.
    package var entries: [[UInt8]: Entry] { state.withLock { $0.entries } }

    /// The names of those of which something is to be done.
    package var restless: Set<[UInt8]> { state.withLock { $0.restless } }

    /// Those of which something is to be done, all of one moment.
    package var restlessEntries: [(name: [UInt8], entry: Entry)] {
        state.withLock { state in state.restless.map { ($0, state.entries[$0] ?? .none) } }
    }

    /// The names of those that have a place.
    package var names: Names { state.withLock { $0.names.names } }

    /// How many collections each user owns; users without any are not there.
    package var ownedCollections: [UInt32: Int] { state.withLock { $0.owned } }

    /// Why collections must not be created; nil: they may, as far as others do not create any at the same time.
    package func refusal(of names: [[UInt8]], by creator: CollectionCreator?) -> CRUDError? {
        state.withLock { $0.refusal(of: names, by: creator) }
    }

    /// The storage that a backend has; nil: none is known, or it has no identity.
    package func storage(of backend: String) -> CatalogStorage? { state.withLock { $0.storages[backend] } }

    /// What is to be remembered of the storage that a backend has: one that the catalog does not know is unsurveyed.
    ///
    /// - Returns: nil where the catalog knows it.
    package func news(of storage: CatalogStorage, of backend: String) -> CatalogStorage? {
        let known = self.storage(of: backend) ?? .forgotten
        guard known.identity != storage.identity || known.location != storage.location else { return nil }
        var news = storage
        news.isUnsurveyed = !storage.isNothing && (known.isUnsurveyed || known.identity != storage.identity)
        return news
    }

    /// The entries of the collections of which a backend has something, be it copies or what is to be removed.
    package func entries(in backend: String) -> [[UInt8]: Entry] {
        entries.filter { $0.value.placement.uses(backend) }
    }

    /// Whether there are such.
    package func isUsing(_ backend: String) -> Bool {
        entries.values.contains { $0.placement.uses(backend) }
    }

    /// Follows the rules and the limit of a configuration.
    package func follow(_ rules: CollectionRules, maximumByPattern: Int) {
        state.withLock { $0.names.follow(rules, maximumByPattern: maximumByPattern) }
    }

    // MARK: Writing

    /// Makes all of these changes durably, or none.
    ///
    /// - Parameter storages: by backend; one without an identity is forgotten.
    package func commit(_ transitions: [Transition], storages: [String: CatalogStorage] = [:]) throws(CatalogError) {
        if transitions.isEmpty, storages.isEmpty { return }
        try file.withLock { file throws(CatalogError) in try commit(transitions, storages, to: file) }
    }

    /// Makes the one change that is not made by the administrator's thread: a collection gets its first record, or has
    /// been found.
    ///
    /// - Parameters:
    ///   - isNew: whether it counts against the limits of collections.
    ///   - creator: who owns it then; nil: no user does.
    ///   - storage: in which it is, to be remembered with it.
    /// - Returns: nil, or why it must not be there: `limit_exceeded`, `no_space` or `unavailable`.
    package func admit(
        _ name: [UInt8], at place: CollectionPlace, isNew: Bool = true, by creator: CollectionCreator? = nil,
        in storage: CatalogStorage? = nil
    ) -> CRUDError? {
        let known = entry(name)
        if known.placement.authority == place { return nil }
        return file.withLock { file in
            let entry = entry(name)
            do throws(CatalogError) {
                switch entry.placement.next(.create(at: place)) {
                case .same: return nil
                case .refused(let refusal): return CRUDError(.unavailable, refusal.message)
                case .to(var placement):
                    if isNew {
                        if let refusal = refusal(of: [name], by: creator) { return refusal }
                        placement.owner = creator?.uid
                    }
                    let news = storage.flatMap { self.news(of: $0, of: place.backend) }
                    let storages = news.map { [place.backend: $0] } ?? [:]
                    try commit([Transition(name, from: entry, to: placement)], storages, to: file)
                    return nil
                }
            } catch {
                // Whatever the next start finds: there is no record, as nothing has been created.
                if case .inDoubt(let cause) = error { return CRUDError(.unavailable, cause.description) }
                return error.error
            }
        }
    }

    private func commit(
        _ transitions: [Transition], _ storages: [String: CatalogStorage], to file: CatalogFile
    ) throws(CatalogError) {
        try resolveDoubt(file)
        var record = CatalogRecord(storages: storages)
        var former = CatalogRecord()
        try state.withLock { state throws(CatalogError) in
            for transition in transitions {
                let entry = state.entries[transition.name] ?? .none
                guard entry.version == transition.version else { throw .stale(name: transition.name) }
                guard transition.placement.isValid else { throw .invalid(name: transition.name) }
                record.collections.append((transition.name, transition.placement))
                former.collections.append((transition.name, entry.placement))
            }
        }
        do throws(CatalogError) {
            try file.commit(record, insteadOf: former) { state.withLock { $0.contents } }
        } catch {
            if case .inDoubt(let cause) = error { doubt(record, former, cause) }
            throw error
        }
        state.withLock { $0.apply(record) }
    }

    // MARK: Doubt

    /// Whether it is not known what a start would find, so that no record is accepted.
    package var isInDoubt: Bool { doubtReason != nil }

    /// Why that is not known; nil: it is.
    package var doubtReason: String? { state.withLock { $0.doubtReason } }

    /// Whether a collection might be served from another place after a restart.
    package func isDoubted(_ name: [UInt8]) -> Bool { state.withLock { $0.doubted.contains(name) } }

    private func doubt(_ record: CatalogRecord, _ former: CatalogRecord, _ cause: SystemError) {
        state.withLock { state in
            state.doubtReason = cause.description
            for (new, old) in zip(record.collections, former.collections)
            where new.placement.authority != old.placement.authority {
                state.doubted.insert(new.name)
            }
        }
    }

    /// Tries to make certain that a record in doubt is not there.
    ///
    /// - Returns: whether nothing is in doubt any more.
    package func resolveDoubt() -> Bool {
        file.withLock { file in (try? resolveDoubt(file)) != nil }
    }

    private func resolveDoubt(_ file: CatalogFile) throws(CatalogError) {
        guard isInDoubt else { return }
        do throws(SystemError) {
            try file.resolveDoubt(state.withLock { $0.contents })
        } catch {
            throw .blocked(error)
        }
        state.withLock { state in
            state.doubtReason = nil
            state.doubted = []
        }
    }
}
