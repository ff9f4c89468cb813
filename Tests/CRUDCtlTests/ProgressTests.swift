import Testing

@testable import crudctl

@Suite struct ProgressTests {
    private let start = ContinuousClock.now

    private func pace(_ samples: (seconds: Int, records: Int)..., total: Int) -> ProgressPace {
        var pace = ProgressPace()
        for sample in samples {
            pace.note(
                ProgressLine(name: "c", phase: "copying", records: sample.records, total: total),
                at: start + .seconds(sample.seconds))
        }
        return pace
    }

    @Test func judgesByTheLastSeconds() {
        #expect(pace((0, 10), total: 100).unitsPerSecond == nil)
        #expect(pace((0, 0), (2, 50), total: 100).unitsPerSecond == 25)
        #expect(pace((0, 0), (2, 50), total: 100).secondsLeft == 2)
        #expect(pace((0, 0), (100, 0), (110, 500), total: 1000).unitsPerSecond == 50)
        #expect(pace((0, 0), (100, 0), (110, 500), total: 1000).secondsLeft == 10)
        #expect(pace((0, 0), (5, 0), total: 10).secondsLeft == nil, "it does not advance")
        #expect(pace((0, 5), (5, 10), total: 10).secondsLeft == nil, "it is over")
        #expect(pace((0, 500), (5, 100), total: 1000).unitsPerSecond == nil, "it has begun again")
    }

    @Test func fitsTheWidth() {
        let pace = pace((0, 0), (10, 200_000), total: 1_000_000)
        let line = ProgressLine(name: "客户", phase: "copying", records: 200_000, total: 1_000_000)
        let numbers = " 20%  200000/1000000 records  20000/s  0:40 left"
        #expect(line.text(width: 120, pace: pace) == "客户  copying  [#####.......................]  \(numbers)")
        #expect(line.text(width: 79, pace: pace) == "客户  copying  [##..........]  \(numbers)")
        #expect(line.text(width: 64, pace: pace) == "客户  copying  \(numbers)")
        #expect(line.text(width: 58, pace: pace) == "客户  c…  \(numbers)")
        for width in 1...120 { #expect(line.text(width: width, pace: pace).displayWidth <= width) }
    }

    @Test func showsWhatIsKnown() {
        let none = ProgressPace()
        #expect(
            ProgressLine(name: "-", phase: "reading", mebibytes: 3).text(width: 60, pace: none) == "-  reading  3 MiB")
        #expect(
            ProgressLine(name: "c", phase: "copying", records: 0, total: 0).text(width: 40, pace: none)
                == "c  copying  [#######]  100%  0/0 records")
        #expect(
            ProgressLine(name: "\u{1B}c", phase: "copying", records: 1).text(width: 60, pace: none).hasPrefix(
                "\\u001bc"))
    }
}
