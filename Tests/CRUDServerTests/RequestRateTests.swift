import CRUDModel
import Synchronization
import Testing

@testable import CRUDServer

/// The rate of one user on a clock of the test: what it lets through does not depend on the machine.
@Suite struct RequestRateTests {
    private static let second: Int64 = 1_000_000_000
    /// An arbitrary time.
    private static let start = 1000 * second

    private final class Ticks: Sendable {
        let ticks = Atomic(0)
    }

    private static func rate(_ maximum: Int) throws -> RequestRate {
        try #require(RequestRates().rate(of: 1000, maximum: maximum))
    }

    /// However much more is asked for, the rate and, once, a tenth of a second of it are let through.
    @Test(arguments: [1, 3, 10, 500, 5000], [2, 7])
    func isExact(_ maximum: Int, _ excess: Int) throws {
        let rate = try Self.rate(maximum)
        let seconds = 10
        let step = Self.second / Int64(maximum * excess)
        let admitted = (0..<seconds * maximum * excess).count { rate.admits(at: Self.start + step * Int64($0)) }
        let expected = seconds * maximum + maximum / 10
        #expect(expected...expected + 1 ~= admitted, "\(admitted) of \(expected)")
        #expect(rate.refusedCount == seconds * maximum * excess - admitted)
    }

    /// What comes within the rate is never refused.
    @Test(arguments: [1, 3, 500, 100_000])
    func letsThroughWhatComesWithinIt(_ maximum: Int) throws {
        let rate = try Self.rate(maximum)
        let step = Self.second / Int64(maximum) + 1
        #expect((0..<10_000).allSatisfy { rate.admits(at: Self.start + step * Int64($0)) })
    }

    @Test func saysWhatIsExceeded() throws {
        let rate = try Self.rate(10)
        let error = rate.excess
        #expect(error.code == .limitExceeded && error.message.contains("may make 10 requests per second"))
    }

    /// A pause is worth a tenth of a second, however long it was.
    @Test func isNotSavedUp() throws {
        let rate = try Self.rate(500)
        for pause: Int64 in [0, 1, 3600] {
            let now = Self.start + (1 + 2 * pause) * Self.second
            #expect((0..<1000).count { _ in rate.admits(at: now) } == 51)
        }
    }

    /// What a batch does is charged later, and delays what follows.
    @Test func chargesWhatABatchHasDone() throws {
        let rate = try Self.rate(10)
        #expect(rate.admits(at: Self.start))
        rate.charge(999, at: Self.start)
        #expect(!rate.admits(at: Self.start + 99_899_000_000))
        #expect(rate.admits(at: Self.start + 99_901_000_000))
    }

    /// Event loops count together.
    @Test func isExactOnSeveralThreads() async throws {
        let rate = try Self.rate(500)
        let clock = Ticks()
        // Ten seconds, in which a hundred times the rate is asked for.
        let (count, step) = (500_000, Int64(20_000))
        let admitted = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    var admitted = 0
                    while true {
                        let tick = clock.ticks.wrappingAdd(1, ordering: .relaxed).oldValue
                        guard tick < count else { return admitted }
                        if rate.admits(at: Self.start + step * Int64(tick)) { admitted += 1 }
                    }
                }
            }
            return await group.reduce(0, +)
        }
        // A thread that was stopped between the two statements asks for a time that has passed.
        #expect(abs(admitted - 5050) <= 50, "\(admitted)")
    }

    /// Users without a limit are not counted, and each of the others by itself.
    @Test func concernsOneUser() throws {
        let rates = RequestRates()
        #expect(rates.rate(of: 1, maximum: nil) == nil)
        let (first, second) = (try #require(rates.rate(of: 2, maximum: 1)), try #require(rates.rate(of: 3, maximum: 1)))
        #expect((0..<100).count { _ in first.admits(at: Self.start) } == 1)
        #expect(second.admits(at: Self.start))
        #expect(rates.rate(of: 2, maximum: nil) == nil)
        #expect(first.admits(at: Self.start), "a reload takes the limit away")
    }
}
