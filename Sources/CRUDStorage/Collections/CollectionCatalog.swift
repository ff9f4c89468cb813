import CLinux
import CRUDJSON
package import CRUDModel
import Glibc
import Synchronization

/// What the daemon remembers of its collections over restarts: which there are, where each lives and in which format.
///
/// It is a file of lines in the state directory, `collections.jsonl`, that is only ever appended to: a line is written
/// and synced before a collection gets its first record. Of lines with one name the last counts; a line that a crash
/// has left unfinished is cut off.
///
/// It follows the configuration that is in force: once a collection may live elsewhere, because it is empty or because
/// the administrator has insisted, that is where it is remembered, and a later start does not ask again.
package final class CollectionCatalog: Sendable {
    /// A collection that holds, or held, records.
    package struct Entry: Sendable, Equatable {
        package var name: [UInt8]
        /// Where it is served from.
        package var place: CollectionPlace
        /// Its move to another place; nil: it is where it is to be.
        package var move: PlannedMove?
        /// Where moves have left its records, which are older than those in its place.
        package var originals: [CollectionPlace] = []

        package init(name: [UInt8], place: CollectionPlace) {
            self.name = name
            self.place = place
        }
    }

    /// What is remembered of a move.
    package struct PlannedMove: Sendable, Equatable {
        package var destination: CollectionPlace
        package var state: Move.State

        package init(destination: CollectionPlace, state: Move.State) {
            self.destination = destination
            self.state = state
        }
    }

    private struct State {
        var rules: CollectionRules
        var maximumBornByGlob: Int
        private(set) var entries: [[UInt8]: Entry] = [:]
        /// Their names in order, and how often these have changed.
        private(set) var names = Names(version: 0, sorted: [])
        /// How many of them no rule names: a glob has brought them into being.
        var bornByGlob = 0

        func isNamedByRule(_ name: [UInt8]) -> Bool {
            rules.rule(for: name.span)?.pattern.isGlob == false
        }

        /// Whether a collection that is about to be created has to be written down.
        ///
        /// - Throws: `limit_exceeded` where it must not be created.
        func needs(_ entry: Entry) throws(CRUDError) -> Bool {
            guard let known = entries[entry.name] else {
                guard bornByGlob < maximumBornByGlob || isNamedByRule(entry.name) else {
                    throw CRUDError(
                        .limitExceeded, "there are as many collections as globs may bring into being",
                        details: .init(limit: "collections", maximum: maximumBornByGlob))
                }
                return true
            }
            return known.place != entry.place
        }

        /// Remembers where a collection lives; nil: nowhere any more.
        mutating func set(_ name: [UInt8], _ entry: Entry?) {
            let isKnown = entries[name] != nil
            entries[name] = entry
            guard isKnown != (entry != nil) else { return }
            let place = names.sorted.place(of: name)
            if isKnown { names.sorted.remove(at: place) } else { names.sorted.insert(name, at: place) }
            names.version += 1
            if !isNamedByRule(name) { bornByGlob += isKnown ? -1 : 1 }
        }

        mutating func countBornByGlob() {
            bornByGlob = entries.keys.count { !isNamedByRule($0) }
        }
    }

    /// The names of all collections that are remembered, in the order of their bytes.
    package struct Names: Sendable {
        /// Another one where any has come or gone.
        package fileprivate(set) var version: UInt64
        package fileprivate(set) var sorted: [[UInt8]]
    }

    private let descriptor: CInt
    /// Held while a line is written and synced, which may take long.
    private let writing = Mutex(())
    /// Never held for long: event loops ask too.
    private let state: Mutex<State>

    /// Opens the catalog, making the directory and the file where they are not there.
    ///
    /// - Throws: ``SystemError`` where that is not possible, or where the file is damaged in its middle.
    package init(directory: String, rules: CollectionRules, maximumBornByGlob: Int) throws(SystemError) {
        try Self.make(directory)
        let path = Self.path(in: directory)
        descriptor = clinux_open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw SystemError("cannot open \(path)") }
        var state = State(rules: rules, maximumBornByGlob: maximumBornByGlob)
        for line in try CatalogFile.load(descriptor, path) { state.set(line.name, line.entry) }
        state.countBornByGlob()
        self.state = Mutex(state)
        try Self.sync(directory)
    }

    /// The path of the file that the catalog is.
    package static func path(in directory: String) -> String { directory + "/collections.jsonl" }

    /// Makes the directory if it is not there.
    package static func make(_ directory: String) throws(SystemError) {
        guard mkdir(directory, 0o700) == 0 else {
            if errno == EEXIST { return }
            throw SystemError("cannot make \(directory)")
        }
        // The parent may be a directory in which the daemon may make entries and which it may not read.
        try? sync(directory + "/..")
    }

    /// Sees that the directory's entries survive power loss.
    private static func sync(_ directory: String) throws(SystemError) {
        let descriptor = clinux_open(directory, O_RDONLY | O_DIRECTORY, 0)
        guard descriptor >= 0 else { throw SystemError("cannot open \(directory)") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw SystemError("cannot sync \(directory)") }
    }

    deinit { close(descriptor) }

    /// Every collection that is remembered, in no particular order.
    package var entries: [Entry] { state.withLock { Array($0.entries.values) } }

    /// Their names.
    package var names: Names { state.withLock { $0.names } }

    /// Remembers a collection durably, before it is created.
    ///
    /// - Returns: nil, or why not: `limit_exceeded` if globs have brought as many into being as they may, `no_space` or
    ///   `unavailable` if the line cannot be written.
    package func admit(_ entry: Entry) -> CRUDError? {
        if state.withLock({ $0.entries[entry.name]?.place == entry.place }) { return nil }
        return writing.withLock { _ in
            do throws(CRUDError) {
                guard try state.withLock({ state throws(CRUDError) in try state.needs(entry) }) else { return nil }
            } catch {
                return error
            }
            guard CatalogFile.append((entry.name, entry), to: descriptor) else {
                let isFull = errno == ENOSPC || errno == EDQUOT
                return CRUDError(isFull ? .noSpace : .unavailable, "the catalog of collections cannot be written")
            }
            state.withLock { $0.set(entry.name, entry) }
            return nil
        }
    }

    /// Forgets a collection that has been dropped.
    ///
    /// - Throws: ``SystemError`` if that cannot be written down. It is forgotten all the same; a later start takes it
    ///   for a collection without records.
    package func forget(_ name: [UInt8]) throws(SystemError) {
        let code: CInt? = writing.withLock { _ in
            let isKnown = state.withLock { state in
                defer { state.set(name, nil) }
                return state.entries[name] != nil
            }
            return !isKnown || CatalogFile.append((name, nil), to: descriptor) ? nil : errno
        }
        if let code { throw SystemError("cannot write the catalog of collections", code: code) }
    }

    /// Follows the rules and the limit that are in force now, and remembers every collection where they put it.
    ///
    /// - Throws: ``SystemError`` if not all of that can be written down. It is in force all the same; what is not
    ///   written down will be asked about again at the next start.
    package func follow(_ rules: CollectionRules, maximumBornByGlob: Int) throws(SystemError) {
        let code: CInt? = writing.withLock { _ in
            let entries = state.withLock { state in
                state.rules = rules
                state.maximumBornByGlob = maximumBornByGlob
                return Array(state.entries.values)
            }
            defer { state.withLock { $0.countBornByGlob() } }
            for entry in entries {
                let rule = rules.rule(for: entry.name.span)
                guard rule?.place != entry.place else { continue }
                let changed = rule.map { entry.abandoned(for: $0.place) }
                guard CatalogFile.append((entry.name, changed), to: descriptor) else { return errno }
                state.withLock { $0.set(entry.name, changed) }
            }
            return nil
        }
        if let code { throw SystemError("cannot write the catalog of collections", code: code) }
    }

    // MARK: Moves

    /// What is remembered of a collection.
    package func entry(named name: [UInt8]) -> Entry? { state.withLock { $0.entries[name] } }

    /// Where collections are served from while they are being moved away.
    package var placesOfMoving: [[UInt8]: CollectionPlace] {
        state.withLock { state in
            state.entries.compactMapValues { entry in
                entry.move.flatMap { $0.state == .removing ? nil : entry.place }
            }
        }
    }

    /// Changes what is remembered of a collection, durably before anybody sees it.
    ///
    /// - Throws: ``SystemError`` if that cannot be written down; nothing has changed then.
    package func update(_ name: [UInt8], _ change: (inout Entry) -> Void) throws(SystemError) {
        let code: CInt? = writing.withLock { _ in
            guard let entry = state.withLock({ $0.entries[name] }) else { return ENOENT }
            var changed = entry
            change(&changed)
            if changed == entry { return nil }
            guard CatalogFile.append((name, changed), to: descriptor) else { return errno }
            state.withLock { $0.set(name, changed) }
            return nil
        }
        if let code { throw SystemError("cannot write the catalog of collections", code: code) }
    }
}

extension CollectionCatalog.Entry {
    /// The collection in another place, where it has no records, or where the administrator has insisted on it.
    fileprivate func abandoned(for place: CollectionPlace) -> Self {
        var entry = self
        entry.place = place
        entry.move = nil
        entry.originals.removeAll { $0 == place }
        return entry
    }
}

extension [[UInt8]] {
    /// Where a name is in an array that is in order, or would be.
    fileprivate func place(of name: [UInt8]) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle].lexicographicallyPrecedes(name) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
