import CRUDTestSupport
import Testing

/// The checker of histories, with true and false ones.
@Suite struct RecordHistoryTests {
    private func history(_ make: (inout RecordHistory) -> Void) -> RecordHistory {
        var history = RecordHistory()
        make(&history)
        return history
    }

    @Test func readsOfTheLatestValueAreTrue() {
        let history = history {
            $0.read(RecordHistory.absent, from: 1, to: 2)
            $0.write(1, from: 3, to: 4, .done)
            $0.read(1, from: 5, to: 6)
            $0.write(2, from: 7, to: 10, .done)
            $0.read(1, from: 8, to: 9)
            $0.read(2, from: 8, to: 10)
            $0.read(2, from: 11, to: 12)
        }
        #expect(history.violation == nil)
    }

    /// A write whose outcome is unknown may take effect late, or never.
    @Test func unknownWriteMayTakeEffectAtAnyTime() {
        let never = history {
            $0.write(1, from: 1, to: 2, .unknown)
            $0.read(RecordHistory.absent, from: 3, to: 4)
        }
        #expect(never.violation == nil)
        let late = history {
            $0.write(1, from: 1, to: 2, .unknown)
            $0.write(2, from: 3, to: 4, .done)
            $0.read(2, from: 5, to: 6)
            $0.read(1, from: 7, to: 8)
            $0.read(1, from: 9, to: 10)
        }
        #expect(late.violation == nil)
    }

    @Test func falseHistoriesAreFound() {
        let stale = history {
            $0.write(1, from: 1, to: 2, .done)
            $0.write(2, from: 3, to: 4, .done)
            $0.read(1, from: 5, to: 6)
        }
        #expect(stale.violation != nil, "a stale read")
        let lost = history {
            $0.write(1, from: 1, to: 2, .done)
            $0.read(RecordHistory.absent, from: 3, to: 4)
        }
        #expect(lost.violation != nil, "an acknowledged write that is lost")
        let refused = history {
            $0.write(1, from: 1, to: 2, .refused)
            $0.read(1, from: 3, to: 4)
        }
        #expect(refused.violation != nil, "a write that was refused and took effect")
        let rewound = history {
            $0.write(1, from: 1, to: 2, .done)
            $0.write(2, from: 3, to: 4, .unknown)
            $0.read(2, from: 5, to: 6)
            $0.read(1, from: 7, to: 8)
        }
        #expect(rewound.violation != nil, "a value that was shown and is gone")
        let twice = history {
            $0.write(1, from: 1, to: 2, .unknown)
            $0.write(2, from: 3, to: 4, .done)
            $0.read(1, from: 5, to: 6)
            $0.read(2, from: 7, to: 8)
            $0.read(1, from: 9, to: 10)
        }
        #expect(twice.violation != nil, "a write that took effect twice")
        let early = history {
            $0.read(1, from: 1, to: 2)
            $0.write(1, from: 3, to: 4, .done)
        }
        #expect(early.violation != nil, "a value that was read before it was written")
        let invented = history { $0.read(7, from: 1, to: 2) }
        #expect(invented.violation != nil, "a value that nobody wrote")
    }
}
