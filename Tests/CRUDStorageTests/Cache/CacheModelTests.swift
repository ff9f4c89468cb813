import CRUDTestSupport
import CRUDThreads
import Synchronization
import Testing

@testable import CRUDStorage

/// Threads that read and write records at random, as event loops, a backend's writer and somebody else do, and compare
/// what the cache says with a dictionary.
@Suite struct CacheModelTests {
    private static let records = 3000
    private static let rounds = 20_000

    /// Records that only count up: an odd number stands for a record that is not there.
    private final class Storage: Sendable {
        struct State {
            var numbers = Array(repeating: 0, count: CacheModelTests.records)
            /// What everybody has been told of each.
            var acknowledged = Array(repeating: 0, count: CacheModelTests.records)
            /// Counts what somebody else has written.
            var version = 0
        }

        let state = Mutex(State())
        /// Held by who writes.
        let writer = Mutex(())
        let epoch = Atomic<UInt32>(0)
        let cache: RecordCache
        let collection: UInt32
        let errors = Mutex<[String]>([])

        init(_ cache: RecordCache) {
            self.cache = cache
            collection = cache.makeCollection()
        }

        var key: CacheKey { CacheKey(collection: collection, epoch: epoch.load(ordering: .acquiring)) }

        func write(_ id: Int) -> Int {
            state.withLock { state in
                state.numbers[id] += 1
                return state.numbers[id]
            }
        }

        func acknowledge(_ id: Int, _ number: Int) { state.withLock { $0.acknowledged[id] = number } }
    }

    /// An event loop, or another thread.
    private struct Actor {
        let storage: Storage
        var random: SeededGenerator
        /// What it has seen of each record.
        var seen = Array(repeating: 0, count: CacheModelTests.records)
        var version = 0

        mutating func run() {
            for _ in 0..<CacheModelTests.rounds {
                // Half of them meet on a few records.
                let id = Int(random.next() % (random.next() % 2 == 0 ? 4 : UInt64(CacheModelTests.records)))
                switch random.next() % 100 {
                case 0: writeBesideTheBackend(id)
                case 1..<10: write(id, isKnown: random.next() % 2 == 0)
                default: read(id)
                }
            }
        }

        private func item(_ number: Int) -> String? { number.isMultiple(of: 2) ? "\(number)" : nil }

        private mutating func read(_ id: Int) {
            let (acknowledged, version) = storage.state.withLock { ($0.acknowledged[id], $0.version) }
            let oldest = max(seen[id], acknowledged)
            if version != self.version { storage.epoch.add(1, ordering: .acquiringAndReleasing) }
            self.version = version
            var found = -1
            let outcome = storage.cache.outcome("\(id)", storage.key) { item, revision in
                let number = Int(revision) ?? -1
                found = self.item(number) == item ? number : -1
            }
            switch outcome {
            case .found: break
            // Which of the times that it was not there is not told.
            case .absent: found = oldest | 1
            case .miss(let ticket):
                found = storage.state.withLock { $0.numbers[id] }
                storage.cache.fill(ticket, "\(id)", item(found), revision: "\(found)")
            }
            let newest = storage.state.withLock { $0.numbers[id] }
            if found < oldest || found > newest {
                storage.errors.withLock { $0.append("record \(id): \(found), not \(oldest) to \(newest)") }
            }
            seen[id] = found
        }

        private func write(_ id: Int, isKnown: Bool) {
            storage.writer.withLock { _ in
                let before = storage.key
                storage.cache.beginWrite("\(id)", before)
                let number = storage.write(id)
                let now = storage.key
                let isKnown = isKnown && before == now
                storage.cache.endWrite("\(id)", now, isKnown ? item(number) : nil, revision: "\(number)")
                storage.acknowledge(id, number)
            }
        }

        private func writeBesideTheBackend(_ id: Int) {
            storage.writer.withLock { _ in
                storage.state.withLock { state in
                    state.numbers[id] += 1
                    state.version += 1
                    state.acknowledged[id] = state.numbers[id]
                }
            }
        }
    }

    @Test func agreesWithADictionary() throws {
        // So small that entries are evicted all the time.
        let storage = Storage(RecordCache(bytes: 16 * 7168))
        let threads = try (0..<4).map { number in
            try Thread(named: "model \(number)") {
                var actor = Actor(storage: storage, random: SeededGenerator(seed: UInt64(number)))
                actor.run()
            }
        }
        for thread in threads { thread.join() }
        #expect(storage.errors.withLock { Array($0.prefix(5)) }.isEmpty)
        #expect(storage.cache.statistics.hits > Self.rounds / 2, "\(storage.cache.statistics)")
        #expect(storage.cache.statistics.evictions > 0, "\(storage.cache.statistics)")
    }
}
