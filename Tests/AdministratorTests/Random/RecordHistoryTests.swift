import CRUDTestSupport
import Testing

/// Histories of one record, false and true.
@Suite struct RecordHistoryTests {
    private typealias Operation = RecordHistory.Operation

    private static let one = Item(number: 1)
    private static let two = Item(number: 2)
    private static let three = Item(number: 3)

    /// A record that holds an item.
    private static func record(_ item: Item) throws -> RecordHistory {
        var record = RecordHistory()
        record.begin(100, .create(item), on: 9)
        try record.end(100, .done)
        return record
    }

    /// Whether one operation after the other can have these outcomes.
    private static func isPossible(_ steps: (Operation, RecordHistory.Outcome)...) -> Bool {
        func isPossible(knowing isKnown: Bool) -> Bool {
            var record = RecordHistory()
            for (ticket, step) in steps.enumerated() {
                record.begin(ticket, step.0, on: ticket % 2, outcome: isKnown ? step.1 : nil)
                guard (try? record.end(ticket, step.1)) != nil else { return false }
            }
            return true
        }
        let result = isPossible(knowing: false)
        #expect(isPossible(knowing: true) == result)
        return result
    }

    /// Two clients of a server that is frozen, say: each pair of items that they could be told would be one state.
    @Test(arguments: [RecordHistory.Outcome.unknown, .returned(Item(number: 900, patch: 5))])
    func requestsThatWaitBesideManyOthersLeaveFewStates(outcome: RecordHistory.Outcome) throws {
        var record = try Self.record(Self.one)
        record.begin(0, .read, on: 0, outcome: .returned(Item(number: 700)))
        record.begin(1, .patch(5), on: 1, outcome: outcome)
        for number in 2..<1000 {
            let item = Item(number: number)
            record.begin(number, .upsert(item), on: 2, outcome: .done)
            try record.end(number, .done)
            #expect(record.items.count <= 3)
        }
        try record.end(0, .returned(Item(number: 700)))
        try record.end(1, outcome)
        #expect(record.items.contains(Item(number: 999)) && record.items.count <= 2)
        #expect(throws: Violation.self) {
            record.begin(2000, .read, on: 0, outcome: .returned(Item(number: 998)))
            try record.end(2000, .returned(Item(number: 998)))
        }
    }

    @Test func aLostUpdateIsFound() {
        #expect(
            !Self.isPossible((.create(Self.one), .done), (.update(Self.two), .done), (.read, .returned(Self.one))))
        #expect(!Self.isPossible((.create(Self.one), .done), (.read, .returned(nil))))
    }

    @Test func aResurrectedRecordIsFound() {
        #expect(!Self.isPossible((.create(Self.one), .done), (.delete, .done), (.read, .returned(Self.one))))
        #expect(!Self.isPossible((.create(Self.one), .done), (.drop, .done), (.create(Self.two), .exists)))
        #expect(Self.isPossible((.create(Self.one), .done), (.drop, .done), (.create(Self.two), .done)))
    }

    @Test func anItemThatWasNeverWrittenIsFound() {
        #expect(!Self.isPossible((.create(Self.one), .done), (.read, .returned(Self.two))))
        #expect(!Self.isPossible((.create(Self.one), .done), (.patch(3), .returned(Item(number: 2, patch: 3)))))
        #expect(Self.isPossible((.create(Self.one), .done), (.patch(3), .returned(Item(number: 1, patch: 3)))))
    }

    @Test func anItemThatIsReadBeforeItIsWrittenIsFound() {
        #expect(!Self.isPossible((.read, .returned(Self.one)), (.create(Self.one), .done)))
    }

    /// As where a server that others have not followed is left.
    @Test func anItemThatWasShownAndIsGoneIsFound() {
        #expect(
            !Self.isPossible(
                (.create(Self.one), .done), (.update(Self.two), .unknown), (.read, .returned(Self.two)),
                (.read, .returned(Self.one))))
    }

    /// It has taken effect before a later request was acknowledged, or it never does.
    @Test func aWriteThatTakesEffectLateIsFound() {
        #expect(
            !Self.isPossible(
                (.create(Self.one), .done), (.update(Self.two), .unknown), (.update(Self.three), .done),
                (.read, .returned(Self.two))))
        #expect(
            !Self.isPossible(
                (.create(Self.one), .done), (.update(Self.two), .unknown), (.read, .returned(Self.one)),
                (.read, .returned(Self.two))))
    }

    @Test func aRefusedWriteMustNotTakeEffect() {
        #expect(!Self.isPossible((.create(Self.one), .refused), (.read, .returned(Self.one))))
        #expect(!Self.isPossible((.create(Self.one), .done), (.drop, .refused), (.read, .returned(nil))))
        #expect(Self.isPossible((.create(Self.one), .done), (.drop, .refused), (.read, .returned(Self.one))))
    }

    @Test func errorsSayWhatTheRecordWas() {
        #expect(!Self.isPossible((.create(Self.one), .exists)))
        #expect(!Self.isPossible((.create(Self.one), .done), (.delete, .missing)))
        #expect(Self.isPossible((.delete, .missing), (.update(Self.one), .missing), (.patch(1), .missing)))
    }

    @Test(arguments: [nil, one])
    func anUnknownOutcomeIsDecidedByTheFirstRead(_ first: Item?) throws {
        var record = RecordHistory()
        record.begin(1, .create(Self.one), on: 0)
        try record.end(1, .unknown)
        #expect(record.items == [nil, Self.one])
        record.begin(2, .read, on: 0)
        try record.end(2, .returned(first))
        #expect(record.items == [first])
        record.begin(3, .read, on: 1)
        #expect(throws: Violation.self, "it has changed its mind") {
            try record.end(3, .returned(first == nil ? Self.one : nil))
        }
    }

    @Test func whatAnotherConnectionReadsMeanwhileIsOldOrNew() throws {
        for item in [Self.one, Self.two] {
            var record = try Self.record(Self.one)
            record.begin(1, .update(Self.two), on: 0)
            record.begin(2, .read, on: 1)
            try record.end(2, .returned(item))
            record.begin(3, .read, on: 1)
            var copy = record
            if item == Self.two {
                #expect(throws: Violation.self, "it was there already") { try copy.end(3, .returned(Self.one)) }
            } else {
                try copy.end(3, .returned(Self.one))
            }
            try record.end(3, .returned(Self.two))
            try record.end(1, .done)
        }
    }

    @Test func theOrderOfAConnectionIsKept() throws {
        var record = try Self.record(Self.one)
        record.begin(1, .update(Self.two), on: 0)
        record.begin(2, .read, on: 0)
        var copy = record
        #expect(throws: Violation.self, "the read came after the write") {
            try copy.end(2, .returned(Self.one))
            try copy.end(1, .done)
        }
        try record.end(2, .returned(Self.two))
        try record.end(1, .done)
    }

    /// A failure may be told later than the success of what follows.
    @Test func aFailureIsToldLate() throws {
        var record = try Self.record(Self.one)
        record.begin(1, .delete, on: 0)
        record.begin(2, .update(Self.two), on: 0)
        try record.end(2, .done)
        var copy = record
        #expect(throws: Violation.self, "an update of a deleted record") { try copy.end(1, .done) }
        try record.end(1, .refused)
        #expect(record.items == [Self.two])
    }

    @Test func aWriteBesideADropIsLostOrNot() throws {
        var record = try Self.record(Self.one)
        record.begin(1, .drop, on: nil)
        record.begin(2, .upsert(Self.two), on: 0)
        try record.end(2, .done)
        try record.end(1, .done)
        #expect(record.items == [nil, Self.two], "what was there before it is gone")
    }
}
