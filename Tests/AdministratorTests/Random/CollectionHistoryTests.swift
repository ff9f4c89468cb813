import CRUDTestSupport
import Testing

/// Histories of a collection, false and true.
@Suite struct CollectionHistoryTests {
    /// A collection with the records 0 to 3, out of 5.
    private static func collection() throws -> CollectionHistory {
        var collection = CollectionHistory("c", records: 5)
        for id in 0..<4 {
            let ticket = collection.begin(.create(Item(number: id)), id, on: 0)
            try collection.end(ticket, .done)
        }
        return collection
    }

    private static let all = Dictionary(uniqueKeysWithValues: (0..<4).map { ($0, Item(number: $0)) })

    @Test func aCompleteQueryIsAccepted() throws {
        var collection = try Self.collection()
        try collection.endScan(collection.beginScan(), found: Self.all)
        try collection.endScan(collection.beginScan(), found: [3: Item(number: 3)]) { $1.number > 2 }
        try collection.endCount(collection.beginScan(), 4)
        try collection.endCount(collection.beginScan(), 2) { $1.number < 2 }
        #expect(collection.certainCount == 4)
    }

    @Test func aMissingRecordIsFound() throws {
        var collection = try Self.collection()
        var found = Self.all
        found[2] = nil
        #expect(throws: Violation.self) { try collection.endScan(collection.beginScan(), found: found) }
        #expect(throws: Violation.self) {
            try collection.endScan(collection.beginScan(), found: [:]) { $1.number > 2 }
        }
        #expect(throws: Violation.self) { try collection.endCount(collection.beginScan(), 3) }
    }

    @Test func aPhantomIsFound() throws {
        var collection = try Self.collection()
        var found = Self.all
        found[4] = Item(number: 4)
        #expect(throws: Violation.self) { try collection.endScan(collection.beginScan(), found: found) }
        #expect(throws: Violation.self) { try collection.endCount(collection.beginScan(), 5) }
        #expect(throws: Violation.self) {
            try collection.endScan(collection.beginScan(), found: Self.all) { $1.number > 2 }
        }
    }

    @Test func aStaleItemIsFound() throws {
        var collection = try Self.collection()
        let ticket = collection.begin(.update(Item(number: 9)), 1, on: 0)
        try collection.end(ticket, .done)
        #expect(throws: Violation.self) { try collection.endScan(collection.beginScan(), found: Self.all) }
    }

    @Test func whatChangesMeanwhileIsOldOrNew() throws {
        let collection = try Self.collection()
        for (item, isDeleted) in [(Item(number: 0), false), (nil, true), (Item(number: 0), true)] {
            var copy = collection
            let scan = copy.beginScan()
            let deletion = copy.begin(.delete, 0, on: 0)
            if isDeleted { try copy.end(deletion, .done) }
            var found = Self.all
            found[0] = item
            try copy.endScan(scan, found: found)
            try copy.end(deletion, .done)
            #expect(throws: Violation.self) { try copy.endScan(copy.beginScan(), found: Self.all) }
        }
    }

    /// A write that is in flight when a query begins may take effect before it or after it.
    @Test func whatIsInFlightIsOldOrNew() throws {
        for isFound in [true, false] {
            var collection = try Self.collection()
            let creation = collection.begin(.create(Item(number: 4)), 4, on: 0)
            let scan = collection.beginScan()
            try collection.end(creation, .done)
            var found = Self.all
            if isFound { found[4] = Item(number: 4) }
            try collection.endScan(scan, found: found)
        }
    }

    /// A query in the order of a member does not meet what changes its place in it.
    @Test func aSortedQueryMayMissWhatChanges() throws {
        var collection = try Self.collection()
        let scan = collection.beginScan()
        let sorted = collection.beginScan()
        let update = collection.begin(.update(Item(number: 7)), 0, on: 0)
        try collection.end(update, .done)
        var found = Self.all
        found[0] = nil
        try collection.endScan(sorted, found: found, isSorted: true)
        #expect(throws: Violation.self) { try collection.endScan(scan, found: found) }
    }

    @Test func aLostConnectionLeavesBoth() throws {
        let collection = try Self.collection()
        for item in [Item(number: 8), Item(number: 2)] {
            var copy = collection
            _ = copy.begin(.update(Item(number: 8)), 2, on: 1)
            try copy.endAll()
            var found = Self.all
            found[2] = item
            try copy.endScan(copy.beginScan(), found: found)
            #expect(copy.items(of: 2) == [item], "decided")
        }
    }

    @Test func aDropRemovesAllOrNothing() throws {
        let collection = try Self.collection()
        var dropped = collection
        try dropped.endDrop(dropped.beginDrop(), .done)
        #expect(dropped.certainCount == 0)
        #expect(throws: Violation.self) { try dropped.endScan(dropped.beginScan(), found: Self.all) }
        var refused = collection
        try refused.endDrop(refused.beginDrop(), .refused)
        #expect(throws: Violation.self) { try refused.endScan(refused.beginScan(), found: [:]) }
    }

    /// What is left in another place is what the records held at some time since the last such was removed, or nothing.
    @Test func anotherPlaceHasThePast() throws {
        var collection = try Self.collection()
        collection.forgetPast()
        let update = collection.begin(.update(Item(number: 9)), 1, on: 0)
        try collection.end(update, .done)
        collection.replaceByPast()
        for (number, isPossible) in [(1, true), (9, true), (2, false)] {
            var copy = collection
            let read = copy.begin(.read, 1, on: 0)
            let outcome = RecordHistory.Outcome.returned(Item(number: number))
            if isPossible {
                try copy.end(read, outcome)
            } else {
                #expect(throws: Violation.self) { try copy.end(read, outcome) }
            }
        }
        let read = collection.begin(.read, 2, on: 0)
        try collection.end(read, .returned(nil))
        #expect(throws: Violation.self) {
            let again = collection.begin(.read, 2, on: 0)
            try collection.end(again, .returned(Item(number: 2)))
        }
    }
}
