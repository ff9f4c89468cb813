import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import CRUDTestSupport
import CRUDThreads
import Glibc
import Synchronization
import Testing

@testable import CRUDStorage

/// What becomes of a backend's cached records when they are written.
@Suite struct BackendCacheTests {
    private let cache = RecordCache(bytes: 4 << 20)
    private let clock = CommitClock(readers: 1)
    private let backend: BackendCache
    private let clients = collection("clients")
    /// What a plugin calls it.
    private let handle: OpaquePointer

    init() throws {
        backend = BackendCache(cache, clock: clock, isWanted: true)
        handle = try #require(OpaquePointer(bitPattern: 8))
        open()
    }

    private func open() {
        clients.cacheNumber = backend.opened(clients, as: handle)
        clients.handle = handle
    }

    private var key: CacheKey { backend.key(clients) ?? CacheKey(collection: 0, epoch: 0) }

    private func fill(_ ids: String...) {
        for id in ids { cache.fill(cache.ticket(id, key), id, "1") }
    }

    private func cached(_ id: String) -> Cached { cache.cached(id, key) }

    /// Makes a write whose outcomes are these.
    private func write(
        _ changes: [Change], _ outcomes: [Int], isAtomic: Bool = false, status: Int = CRUDD_OK,
        during call: () throws -> Void = {}
    ) throws {
        let batch = MutationBatch { _ in }
        for change in changes { batch.append(batch.mutation(change, in: clients)) }
        let records = UnsafeMutablePointer<crudd_record>.allocate(capacity: changes.count)
        defer { records.deallocate() }
        let raw = batch.pluginMutations.enumerated().map { $1.raw(sequence: 1, record: records + $0, keys: nil) }
        let results = outcomes.map { status in
            var outcome = crudd_outcome.sized()
            outcome.status = crudd_status(status)
            return outcome
        }
        try raw.withUnsafeBufferPointer { raw in
            try results.withUnsafeBufferPointer { results in
                backend.willCommit(raw)
                defer {
                    backend.committed(
                        Commit(mutations: raw, outcomes: results, status: crudd_status(status), isAtomic: isAtomic))
                }
                try call()
            }
        }
    }

    @Test func commitReplacesWhatIsCached() throws {
        fill("a", "b", "c", "d")
        try write(
            [.put("a", "2", "r2"), .remove("b"), .put("c", "3", "r3", if: .absent), .put("e", "5")],
            [CRUDD_OK, CRUDD_OK, CRUDD_EXISTS, CRUDD_OK]
        ) {
            #expect(cached("a") == .unknown, "it may be visible")
            #expect(cached("d") == .record(item: "1", revision: "r"))
        }
        #expect(cached("a") == .record(item: "2", revision: "r2"))
        #expect(cached("b") == .unknown)
        #expect(cached("c") == .unknown)
        #expect(cached("e") == .unknown)
    }

    @Test(arguments: [CRUDD_OK, CRUDD_OUTCOME_UNKNOWN])
    func nothingIsKeptThatMayNotHaveBeenApplied(status: Int) throws {
        fill("a", "b")
        try write([.put("a", "2"), .put("b", "2")], [CRUDD_OK, CRUDD_MISMATCH], isAtomic: true, status: status)
        #expect(cached("a") == .unknown)
        #expect(cached("b") == .unknown)
    }

    @Test func writeThatSomebodyElseHasOvertakenIsNotKept() throws {
        fill("a", "b")
        try write([.put("a", "2")], [CRUDD_OK]) { backend.noteForeignWrite() }
        #expect(cached("a") == .unknown)
        #expect(cached("b") == .unknown)
    }

    @Test func foreignWriteEndsSnapshotsToo() throws {
        fill("a")
        let before = clock.now
        backend.noteForeignWrite()
        #expect(clock.now > before)
        #expect(cached("a") == .unknown)
    }

    @Test func collectionThatIsOpenedAgainHasNothingCached() throws {
        fill("a")
        backend.closes(clients)
        clients.close()
        #expect(backend.key(clients) == nil)
        #expect(cache.statistics.entries == 0)
        open()
        #expect(cached("a") == .unknown)
    }

    /// A child knows a collection by several numbers.
    @Test func collectionWithSeveralHandlesIsOne() throws {
        let other = collection("clients")
        other.cacheNumber = backend.opened(other, as: try #require(OpaquePointer(bitPattern: 16)))
        #expect(other.cacheNumber == clients.cacheNumber)
        fill("a")
        try write([.put("a", "2", "r2")], [CRUDD_OK])
        #expect(cache.cached("a", try #require(backend.key(other))) == .record(item: "2", revision: "r2"))
    }

    @Test func backendNeedNotBeCached() throws {
        fill("a")
        backend.cacheRecords(false)
        #expect(backend.key(clients) == nil)
        #expect(cache.statistics.entries == 0)
        backend.cacheRecords(true)
        #expect(cached("a") == .unknown)
    }

    // MARK: The commit counter of a child

    private func set(_ counter: UInt32, in file: String) throws {
        try Files.write(withUnsafeBytes(of: counter) { [0, 0, 0, 0] + Array($0) }, to: file)
    }

    @Test func counterTellsWhoHasWritten() throws {
        let directory = try TemporaryDirectory()
        let file = "\(directory.path)/counter"
        try set(7, in: file)
        backend.open(CommitCounter(at: .init(path: file, offset: 4)))
        #expect(backend.followForeignWrites())
        fill("a", "b", "c")
        try write([.put("a", "2", "r2"), .put("x", if: .present)], [CRUDD_OK, CRUDD_NOT_FOUND]) {
            #expect(backend.followForeignWrites())
            try set(8, in: file)
            #expect(!backend.followForeignWrites(), "it may be our own commit or somebody else's")
        }
        #expect(backend.followForeignWrites())
        #expect(cached("a") == .record(item: "2", revision: "r2"))
        // Nothing is committed where every precondition fails, or one of an atomic write.
        try write([.put("x", if: .present)], [CRUDD_NOT_FOUND])
        try write([.put("b"), .check("x", if: .present)], [CRUDD_OK, CRUDD_NOT_FOUND], isAtomic: true)
        #expect(cached("a") == .record(item: "2", revision: "r2"))
        // Somebody else writes during such a write.
        try write([.put("x", if: .present)], [CRUDD_NOT_FOUND]) { try set(9, in: file) }
        #expect(backend.followForeignWrites())
        #expect(cached("a") == .unknown)
        fill("a")
        try set(10, in: file)
        #expect(backend.followForeignWrites())
        #expect(cached("a") == .unknown)
        try Files.write("", to: file)
        #expect(!backend.followForeignWrites())
        backend.open(nil)
        #expect(!backend.followForeignWrites())
    }

    /// Of several loops one notices the write of another program; none may find the epoch before it any more.
    @Test func loopsThatFindNothingNewFindTheNewEpoch() throws {
        let version = Atomic<UInt64>(1)
        backend.open(nil, version: { version.load(ordering: .acquiring) })
        let stale = Atomic<Int>(0)
        let isOver = Atomic<Bool>(false)
        // By the version, the epoch from before it.
        let outdated = Mutex<(version: UInt64, epoch: UInt32)>((0, 0))
        let (backend, clients) = (backend, clients)
        let threads = try (0..<3).map { number in
            try Thread(named: "loop \(number)") {
                while !isOver.load(ordering: .relaxed) {
                    let old = outdated.withLock(\.self)
                    guard backend.followForeignWrites(), let key = backend.key(clients) else { continue }
                    if old.version != 0, key.epoch == old.epoch { stale.add(1, ordering: .relaxed) }
                }
            }
        }
        for next in UInt64(2)..<50_000 {
            let epoch = try #require(backend.key(clients)).epoch
            version.store(next, ordering: .releasing)
            outdated.withLock { $0 = (next, epoch) }
            if next % 64 == 0 { sched_yield() }
        }
        isOver.store(true, ordering: .relaxed)
        for thread in threads { thread.join() }
        #expect(stale.load(ordering: .relaxed) == 0)
    }

    @Test func counterThatCannotBeReadIsNone() throws {
        let directory = try TemporaryDirectory()
        #expect(CommitCounter(at: .init(path: "\(directory.path)/none", offset: 0)) == nil)
        #expect(CommitCounter(at: .init(path: directory.path, offset: 0)) == nil)
        #expect(CommitCounter(at: .init(path: "relative", offset: 0)) == nil)
        #expect(CommitCounter(at: .init(path: "/proc/self/exe", offset: .max)) == nil)
    }
}
