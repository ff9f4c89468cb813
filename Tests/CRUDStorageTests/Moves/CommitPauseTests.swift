import CRUDTestSupport
import Testing

@testable import CRUDStorage

/// Writers that are faster than a copy wait after each commit.
@Suite struct CommitPauseTests {
    @Test func itGrowsWhileMoreChangesComeThanAreCopied() {
        var pause = CommitPause()
        pause.note(before: 100, after: 20)
        pause.note(before: 0, after: 0)
        #expect(pause.duration == .zero)
        pause.note(before: 100, after: 100)
        pause.note(before: 100, after: 150)
        #expect(pause.duration == .milliseconds(2))
        pause.note(before: 150, after: 149)
        #expect(pause.duration == .milliseconds(2) && !pause.isLongest, "catching up is enough")
        for _ in 0..<1000 { pause.note(before: 1, after: 2) }
        #expect(pause.duration == .milliseconds(100) && pause.isLongest)
    }

    @Test func writersOfTheCollectionWait() throws {
        let moved = try MovedBackends()
        let main = moved.backends[0]
        let collection = moved.collection()
        try main.write([.put("1")], in: collection)
        let tracker = ChangeTracker(collection)
        main.environment.trackers.add(tracker)
        tracker.commitPause = .milliseconds(30)
        let begin = ContinuousClock.now
        for number in 0..<5 { try main.write([.put("\(number)")], in: collection) }
        // The last one is replied to before it.
        #expect(ContinuousClock.now - begin >= .milliseconds(4 * 30))
        #expect(Set(tracker.take(atMost: 9)).count == 5)
        main.environment.trackers.remove(tracker)
        #expect(main.environment.trackers.takePause() == .zero)
    }
}
