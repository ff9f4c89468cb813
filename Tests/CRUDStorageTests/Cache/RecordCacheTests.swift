import CRUDTestSupport
import Glibc
import Testing

@testable import CRUDStorage

/// What one thread sees of the cache.
@Suite struct RecordCacheTests {
    private let cache = RecordCache(bytes: 4 << 20)
    private let key: CacheKey

    init() {
        key = CacheKey(collection: cache.makeCollection(), epoch: 1)
    }

    private func read(_ id: String, _ item: String?) { cache.fill(cache.ticket(id, key), id, item) }

    @Test func findsWhatWasFilled() {
        #expect(cache.cached("a", key) == .unknown)
        read("a", "1")
        read("", "2")
        read("b", nil)
        #expect(cache.cached("a", key) == .record(item: "1", revision: "r"))
        #expect(cache.cached("", key) == .record(item: "2", revision: "r"))
        #expect(cache.cached("b", key) == .absent)
        #expect(cache.cached("ab", key) == .unknown)
        #expect(cache.cached("a", CacheKey(collection: cache.makeCollection(), epoch: 1)) == .unknown)
        #expect(cache.statistics.hits == 3)
        #expect(cache.statistics.entries == 3)
    }

    @Test func anotherEpochEndsEverything() {
        read("a", "1")
        let next = CacheKey(collection: key.collection, epoch: 2)
        #expect(cache.cached("a", next) == .unknown)
        cache.fill(cache.ticket("a", next), "a", "2")
        #expect(cache.cached("a", next) == .record(item: "2", revision: "r"))
        #expect(cache.cached("a", key) == .unknown)
    }

    @Test func expiredRecordIsNotServed() {
        cache.fill(cache.ticket("past", key), "past", "1", expiresAt: 1)
        cache.fill(cache.ticket("future", key), "future", "1", expiresAt: .max)
        #expect(cache.cached("past", key) == .unknown)
        #expect(cache.cached("future", key) == .record(item: "1", revision: "r"))
    }

    // MARK: Writes

    @Test func writeReplacesWhatIsCached() {
        read("a", "1")
        read("none", nil)
        for id in ["a", "none", "uncached"] { cache.beginWrite(id, key) }
        #expect(cache.cached("a", key) == .unknown, "the write may be visible")
        for (id, item) in [("a", "2"), ("none", "longer than nothing"), ("uncached", "3")] {
            cache.endWrite(id, key, item)
        }
        #expect(cache.cached("a", key) == .record(item: "2", revision: "w"))
        #expect(cache.cached("none", key) == .record(item: "longer than nothing", revision: "w"))
        #expect(cache.cached("uncached", key) == .unknown, "nobody has asked for it")
    }

    @Test func writeOfUnknownOutcomeRemoves() {
        read("a", "1")
        cache.beginWrite("a", key)
        cache.endWrite("a", key, nil)
        #expect(cache.cached("a", key) == .unknown)
        #expect(cache.statistics.entries == 0)
    }

    @Test func readThatBeganBeforeAWriteIsNotKept() {
        let before = cache.ticket("a", key)
        #expect(before != nil)
        cache.beginWrite("a", key)
        cache.fill(before, "a", "1")
        #expect(cache.ticket("a", key) == nil, "nothing may be filled during a write")
        cache.endWrite("a", key, "2")
        cache.fill(before, "a", "1")
        #expect(cache.cached("a", key) == .unknown)
    }

    /// Somebody else has written between two reads, and which was the later nobody knows.
    @Test func readsThatDisagreeAreNotKept() {
        let tickets = (0..<2).map { _ in cache.ticket("a", key) }
        cache.fill(tickets[0], "a", "1", revision: "r1")
        cache.fill(tickets[0], "a", "1", revision: "r1")
        #expect(cache.cached("a", key) == .record(item: "1", revision: "r1"))
        cache.fill(tickets[1], "a", "2", revision: "r2")
        #expect(cache.cached("a", key) == .unknown)
    }

    // MARK: Memory

    @Test func memoryIsBoundedAndCompact() {
        let item = String(repeating: "x", count: 200)
        for number in 0..<40_000 { read("record:\(number)", item) }
        let statistics = cache.statistics
        #expect(statistics.bytes <= 4 << 20)
        #expect(statistics.evictions > 10_000)
        #expect(statistics.bytes / statistics.entries <= 320, "per record of 200 bytes: \(statistics)")
    }

    /// Some 812 entries in each of 16 shards: more than three quarters of 1024 slots, fewer than seven eighths.
    @Test func indexDoublesOnlyWhenItIsAlmostFull() {
        let item = String(repeating: "x", count: 200)
        for number in 0..<13_000 { read("record:\(number)", item) }
        let statistics = cache.statistics
        #expect(statistics.evictions == 0)
        #expect(statistics.bytes / statistics.entries <= 266, "per record of 200 bytes: \(statistics)")
    }

    @Test func removingACollectionLeavesTheOthers() {
        let other = CacheKey(collection: cache.makeCollection(), epoch: 1)
        for number in 0..<1000 {
            read("\(number)", "1")
            cache.fill(cache.ticket("\(number)", other), "\(number)", "2")
        }
        cache.removeAll(of: key.collection)
        #expect(cache.statistics.entries == 1000)
        for number in 0..<1000 {
            #expect(cache.cached("\(number)", key) == .unknown)
            #expect(cache.cached("\(number)", other) == .record(item: "2", revision: "r"))
        }
        cache.removeAll(of: other.collection)
        #expect(cache.statistics.entries == 0)
        #expect(cache.statistics.bytes < 1 << 20)
        read("again", "1")
        #expect(cache.cached("again", key) == .record(item: "1", revision: "r"))
    }

    @Test func emptyCacheGivesItsMemoryBack() throws {
        let cache = RecordCache(bytes: 64 << 20)
        let before = try residentBytes()
        let item = String(repeating: "x", count: 8000)
        for number in 0..<6000 { cache.fill(cache.ticket("\(number)", key), "\(number)", item) }
        #expect(try residentBytes() - before > 40 << 20)
        cache.removeAll(of: key.collection)
        #expect(try residentBytes() - before < 10 << 20)
    }

    private func residentBytes() throws -> Int {
        let pages = String(decoding: try Files.read("/proc/self/statm"), as: UTF8.self).split(separator: " ")[1]
        return try #require(Int(pages)) * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    @Test func resizingEmptiesIt() {
        read("a", "1")
        cache.beginWrite("written", key)
        cache.resize(to: 8 << 20)
        #expect(cache.cached("a", key) == .unknown)
        read("a", "2")
        #expect(cache.cached("a", key) == .record(item: "2", revision: "r"))
        #expect(cache.ticket("written", key) == nil, "the write is in progress still")
        cache.endWrite("written", key, nil)
        #expect(cache.ticket("written", key) != nil)
        cache.resize(to: 0)
        #expect(!cache.isEnabled)
        read("a", "1")
        #expect(cache.cached("a", key) == .unknown)
        #expect(cache.statistics.bytes == 0)
    }

    @Test func longRecordIsNotCached() {
        read("a", String(repeating: "x", count: 1 << 20))
        #expect(cache.cached("a", key) == .unknown)
        cache.fill(cache.ticket("b", key), "b", "1", revision: String(repeating: "r", count: 65))
        #expect(cache.cached("b", key) == .unknown)
        read("c", "1")
        cache.beginWrite("c", key)
        cache.endWrite("c", key, String(repeating: "x", count: 1 << 20))
        #expect(cache.cached("c", key) == .unknown)
    }
}
