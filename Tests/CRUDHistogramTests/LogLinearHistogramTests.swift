import Testing

@testable import CRUDHistogram

@Suite struct LogLinearHistogramTests {
    private struct Generator: RandomNumberGenerator {
        var state: UInt64 = 7
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ state >> 31
        }
    }

    /// Of values of all magnitudes, each quantile is its value or at most 2 % above it.
    @Test func aQuantileIsAtMostTwoPercentAboveItsValue() throws {
        var generator = Generator()
        for count in [1, 2, 10, 1000, 20_000] {
            var histogram = LogLinearHistogram()
            let values = (0..<count).map { _ in UInt64.random(in: 0...UInt64.max, using: &generator) }
                .map { $0 >> UInt64.random(in: 0..<64, using: &generator) }.sorted()
            for value in values { histogram.add(value) }
            for fraction in [0, 0.01, 0.5, 0.9, 0.99, 0.999, 1] {
                let rank = max(1, Int((Double(count) * fraction).rounded(.up)))
                let (exact, found) = (values[rank - 1], try #require(histogram.quantile(fraction)))
                #expect(found >= exact && Double(found - exact) <= 0.02 * Double(exact), "\(fraction) of \(count)")
            }
        }
    }

    @Test func everyValueIsInItsRange() {
        var last = -1
        for shift in 0..<64 {
            for value in [UInt64(1) << UInt64(shift), UInt64.max >> UInt64(63 - shift)] {
                let range = LogLinearHistogram.range(of: value)
                #expect(range >= last && range < LogLinearHistogram.rangeCount)
                last = range
            }
        }
        #expect(LogLinearHistogram.range(of: 0) == 0 && last == LogLinearHistogram.rangeCount - 1)
        var histogram = LogLinearHistogram()
        #expect(histogram.quantile(0.5) == nil && histogram.counts.isEmpty)
        histogram.add(.max)
        #expect(histogram.quantile(0.5) == .max)
    }

    @Test func sumsAndDifferencesAreThoseOfTheirValues() {
        var generator = Generator()
        let (first, second) = (
            (0..<500).map { _ in UInt64.random(in: 0..<1_000_000, using: &generator) },
            (0..<500).map { _ in UInt64.random(in: 0..<50_000_000, using: &generator) }
        )
        var (one, other, both) = (LogLinearHistogram(), LogLinearHistogram(), LogLinearHistogram())
        for value in first { one.add(value) }
        for value in second { other.add(value) }
        for value in first + second { both.add(value) }
        var sum = one
        sum.add(other)
        #expect(sum == both && sum.total == 1000)
        #expect(both.since(one) == other && one.since(both).total == 0)
        #expect(both.since(LogLinearHistogram()) == both)
    }

    /// Powers of two and what is below 128 are ends of ranges, so that counts up to such bounds are exact or nearly so.
    @Test func countsUpToABound() {
        var histogram = LogLinearHistogram()
        for value in UInt64(1)...2000 { histogram.add(value) }
        for bound in [1, 2, 64, 127] as [UInt64] { #expect(histogram.count(upTo: bound) == bound) }
        #expect(histogram.count(upTo: 128) == 129 && histogram.count(upTo: 1024) == 1039)
        #expect(histogram.count(upTo: .max) == 2000)
    }
}
