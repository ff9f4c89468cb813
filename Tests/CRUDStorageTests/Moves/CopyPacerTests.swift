import Testing

@testable import CRUDStorage

/// How fast records are copied.
@Suite struct CopyPacerTests {
    @Test func pagesGrowUntilAStepTakesLong() {
        var pacer = CopyPacer()
        let first = pacer.pageRecords
        #expect(pacer.copied(in: .milliseconds(1), waiting: .zero) == .zero)
        #expect(pacer.pageRecords == first * 2)
        for _ in 0..<20 { _ = pacer.copied(in: .milliseconds(1), waiting: .zero) }
        let largest = pacer.pageRecords
        _ = pacer.copied(in: .milliseconds(20), waiting: .zero)
        #expect(pacer.pageRecords == largest)
        for _ in 0..<20 { _ = pacer.copied(in: .seconds(1), waiting: .zero) }
        #expect(pacer.pageRecords == 1)
    }

    /// Whoever had to wait was not alone: clients get at least half of the time.
    @Test func clientsComeFirst() {
        var pacer = CopyPacer()
        #expect(pacer.copied(in: .microseconds(10_500), waiting: .microseconds(500)) == .zero)
        #expect(pacer.copied(in: .milliseconds(12), waiting: .milliseconds(2)) == .milliseconds(10))
        #expect(pacer.copied(in: .milliseconds(30), waiting: .milliseconds(20)) == .milliseconds(20))
    }

    /// The wait is no reason to copy less at once.
    @Test func waitsDoNotCountAsWork() {
        var pacer = CopyPacer()
        let first = pacer.pageRecords
        _ = pacer.copied(in: .milliseconds(100), waiting: .milliseconds(99))
        #expect(pacer.pageRecords == first * 2)
    }
}
