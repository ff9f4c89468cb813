import Synchronization

/// What has been done to the collections, for whoever reads why a run has failed.
final class Trace: Sendable {
    private struct Entry {
        let number: Int
        /// Since the start.
        let time: Duration
        let text: String
        /// Empty: all.
        let collections: [String]
    }

    private static let limit = 4000
    private let entries = Mutex<[Entry]>([])
    private let count = Mutex(0)
    private let start = ContinuousClock.now

    func add(_ text: String, to collections: [String] = []) {
        let number = count.withLock {
            $0 += 1
            return $0
        }
        entries.withLock {
            $0.append(Entry(number: number, time: start.duration(to: .now), text: text, collections: collections))
            if $0.count > Self.limit { $0.removeFirst(Self.limit / 2) }
        }
    }

    /// The last lines about a collection; nil: about all.
    func text(of collection: String?, last count: Int = 60) -> String {
        entries.withLock { entries in
            entries.filter { entry in
                entry.collections.isEmpty || collection.map(entry.collections.contains) ?? true
            }.suffix(count).map {
                "\($0.number) \($0.time) \($0.collections.joined(separator: ",")) \($0.text)"
            }.joined(separator: "\n")
        }
    }
}
