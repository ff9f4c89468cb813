import CLinux
package import CRUDConfiguration
import CRUDJSON
package import CRUDModel
import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// What the daemon remembers of its collections over restarts: which there are, where each lives and in which format.
///
/// It is a file of lines in the state directory, `collections.jsonl`, that is only ever appended to: a line is written
/// and synced before a collection gets its first record. Of lines with one name the last counts; a line that a crash
/// has left unfinished is cut off.
package final class CollectionCatalog: Sendable {
    /// A collection that holds, or held, records.
    package struct Entry: Sendable, Equatable {
        package var name: [UInt8]
        package var backend: String
        package var format: String

        package init(name: [UInt8], backend: String, format: String) {
            self.name = name
            self.backend = backend
            self.format = format
        }
    }

    private struct State {
        var entries: [[UInt8]: Entry] = [:]
        /// How many of them no rule names: a glob has brought them into being.
        var bornByGlob = 0
    }

    private let rules: CollectionRules
    private let maximumBornByGlob: Int
    private let descriptor: CInt
    private let state: Mutex<State>

    /// Opens the catalog, making the directory and the file where they are not there.
    ///
    /// - Throws: ``SystemFault`` where that is not possible, or where the file is damaged in its middle.
    package init(directory: String, rules: CollectionRules, maximumBornByGlob: Int) throws(SystemFault) {
        self.rules = rules
        self.maximumBornByGlob = maximumBornByGlob
        if mkdir(directory, 0o700) != 0, errno != EEXIST { throw SystemFault("cannot make \(directory)") }
        let path = directory + "/collections.jsonl"
        descriptor = clinux_open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw SystemFault("cannot open \(path)") }
        var state = State()
        for entry in try CatalogFile.load(descriptor, path) { state.entries[entry.name] = entry }
        state.bornByGlob = state.entries.keys.count { !Self.isNamed($0, by: rules) }
        self.state = Mutex(state)
    }

    deinit { close(descriptor) }

    /// Every collection that is remembered, in no particular order.
    package var entries: [Entry] { state.withLock { Array($0.entries.values) } }

    /// Remembers a collection durably, before it is created.
    ///
    /// - Returns: nil, or why not: `limit_exceeded` if globs have brought as many into being as they may, `no_space` or
    ///   `unavailable` if the line cannot be written.
    package func admit(_ entry: Entry) -> CRUDError? {
        state.withLock { state in
            if state.entries[entry.name] == entry { return nil }
            let isNew = state.entries[entry.name] == nil && !Self.isNamed(entry.name, by: rules)
            if isNew, state.bornByGlob >= maximumBornByGlob {
                return CRUDError(
                    .limitExceeded, "there are as many collections as globs may bring into being",
                    details: .init(limit: "collections", maximum: maximumBornByGlob))
            }
            guard CatalogFile.append(entry, to: descriptor) else {
                let isFull = errno == ENOSPC || errno == EDQUOT
                return CRUDError(isFull ? .noSpace : .unavailable, "the catalog of collections cannot be written")
            }
            state.entries[entry.name] = entry
            if isNew { state.bornByGlob += 1 }
            return nil
        }
    }

    private static func isNamed(_ name: [UInt8], by rules: CollectionRules) -> Bool {
        rules.rule(for: name.span)?.pattern.isGlob == false
    }
}

/// A call of the system that failed: what was tried, and errno's text.
package struct SystemFault: Error, CustomStringConvertible {
    package let description: String
    /// errno.
    package let code: CInt

    package init(_ attempt: String, code: CInt = errno) {
        self.code = code
        description = "\(attempt): \(String(cString: strerror(code)))"
    }
}
