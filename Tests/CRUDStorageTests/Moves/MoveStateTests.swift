import CRUDModel
import CRUDPlacement
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import CRUDThreads
import Testing

@testable import CRUDStorage

/// The states of a move, each of which the catalog remembers before anything is done in it.
@Suite struct MoveStateTests {
    private let moved: MovedBackends

    init() throws {
        moved = try MovedBackends()
    }

    private let place = CollectionPlace(backend: "main", format: .json)
    private let destination = CollectionPlace(backend: "other", format: .json)

    private var main: Backend { moved.backends[0] }
    private var other: Backend { moved.backends[1] }

    private func fill(_ count: Int = 100) throws {
        let changes = (0..<count).map { Change.put("\($0)", #"{"n":\#($0)}"#, "r\($0)") }
        #expect(try main.write(changes, in: moved.collection()).outcomeTexts.allSatisfy { $0 == "applied" })
    }

    @Test func everythingOfARecordIsPreserved() throws {
        let batch = MutationBatch { _ in }
        var mutation = batch.mutation(.put("x", #"{"n":1}"#, "r7"), in: moved.collection())
        mutation.expiresAt = 4_102_444_800_000
        batch.append(mutation)
        let original = moved.collection()
        try main.perform(within: .seconds(30)) { storage throws(CRUDError) in
            try storage.openForWriting(Mutation(.put, in: original, id: .empty, precondition: .any))
        }
        try fill(3)
        try main.perform(within: .seconds(30)) { storage throws(CRUDError) in
            var copied = batch.mutations[0]
            copied.collection = original
            batch.append(copied)
            _ = try storage.write([PluginMutation(batch: batch, position: 1)])
        }
        let records = try moved.records(of: 0, original)
        #expect(records.last == #"x {"n":1} r7 4102444800000"#)
        try moved.begin(Placement(.planned(place, to: destination)))
        try moved.awaitRest()
        let copy = moved.collection()
        #expect(try moved.records(of: 1, copy) == records)
        #expect(copy.indexes?.usable.count == 1, "the index is complete")
        // What is written from now on comes after what was copied.
        #expect(try other.write([.put("0", "{}", "r9")], in: copy).outcomeTexts == ["replaced"])
        #expect(try moved.records(of: 1, copy).first == "0 {} r9 0")
        let sequences = try moved.sequences(of: 1, copy)
        #expect(sequences.max() == sequences.first)
    }

    /// A copy that was begun before changes were turned on does not continue the feed: it has to begin again.
    @Test func aCopyWithoutTheFeedIsNotValidOnceThereIsOne() throws {
        try fill(3)
        func copy() throws -> CollectionCopy {
            let copy = CollectionCopy(moved.name, from: (main, place), to: (other, destination))
            _ = try copy.begin()
            return copy
        }
        let first = try copy()
        #expect(first.isValid)
        let rule = try CollectionRule(
            "c", backend: "other", indexes: ["n"], changes: .init(position: .start))
        for backend in moved.backends { backend.follow(CollectionRules([rule])) }
        #expect(!first.isValid)
        #expect(try copy().isValid)
    }

    @Test func statesAreRememberedBeforeTheyAct() throws {
        try fill()
        moved.loops.close()
        try moved.begin(Placement(.planned(place, to: destination)))
        let gate = try moved.loops.switches.take()
        #expect(try moved.remembered() == Placement(.copying(place, to: destination)))
        let progress = try moved.await(.switching)
        #expect(progress.copied == 100 && progress.total == 100)

        // Written while the move waits for its switch: copied with the rest.
        try main.write([.put("new"), .put("5", "5", "r"), .remove("6")], in: moved.collection())
        gate.resolve(true)
        moved.loops.open()
        try moved.awaitRest()
        #expect(try moved.remembered() == Placement(.resident(destination), originals: [place]))
        let (old, new) = (moved.collection(), moved.collection())
        #expect(try moved.records(of: 1, new) == moved.records(of: 0, old))
        #expect(try moved.records(of: 1, new).count == 100)
        // The new place counts by itself.
        #expect(try Set(moved.sequences(of: 1, new)).count == 100)
    }

    /// What is in the new place is not the move's own, unless it has begun to copy.
    @Test func recordsInTheNewPlaceEndAPlannedMove() throws {
        try fill(3)
        try other.write([.put("1", "true", "foreign")], in: moved.collection())
        try moved.begin(Placement(.planned(place, to: destination)))
        let progress = try moved.await(.failed)
        #expect(progress.reason?.contains("backend other as json") == true)
        #expect(try moved.remembered() == Placement(.planned(place, to: destination)))
        let foreign = moved.collection()
        #expect(try moved.records(of: 1, foreign).count == 1)
    }

    /// A copy that was cut short: what is equal stays, what is old is replaced, what has gone since is removed.
    @Test func aCopyThatWasCutShortContinues() throws {
        try fill()
        let foreign = moved.collection()
        try other.write(
            [.put("5", #"{"n":5}"#, "r5"), .put("6", "6", "r6"), .put("7", #"{"n":7}"#, "old"), .put("gone")],
            in: foreign)
        try moved.begin(Placement(.copying(place, to: destination)))
        try moved.awaitRest()
        let (old, new) = (moved.collection(), moved.collection())
        let withoutSequence = { (record: String) in record.split(separator: " ").dropLast().joined(separator: " ") }
        #expect(try moved.records(of: 1, new).map(withoutSequence) == moved.records(of: 0, old).map(withoutSequence))
    }

    /// A move that is cancelled while it waits for its switch is not switched, and its copies are removed.
    @Test func aCancelledMoveIsNotSwitched() throws {
        try fill(10)
        moved.loops.close()
        try moved.begin(Placement(.planned(place, to: destination)))
        let gate = try moved.loops.switches.take()
        try moved.begin(Placement(.resident(place), obsolete: [destination]))
        gate.resolve(true)
        moved.loops.open()
        try moved.awaitRest()
        #expect(try moved.remembered() == Placement(.resident(place)))
        #expect(try moved.records(of: 1, moved.collection()).isEmpty)
        #expect(try main.write([.put("later")], in: moved.collection()).outcomeTexts == ["applied"])
    }

    /// What is begun again while its copies are being removed is copied when that is done.
    @Test func aMoveThatBeginsAgain() throws {
        try fill(10)
        try other.write([.put("foreign")], in: moved.collection())
        try moved.begin(Placement(.planned(place, to: destination), obsolete: [destination]))
        try moved.awaitRest()
        #expect(try moved.remembered() == Placement(.resident(destination), originals: [place]))
        #expect(try moved.records(of: 1, moved.collection()).count == 10)
    }

    /// A target that stores something else than it is given, or nothing.
    @Test(arguments: [
        "UPDATE c SET item = '8' WHERE id = new.id", "UPDATE c SET revision = 'other' WHERE id = new.id",
        "UPDATE c SET expires_at = 4102444800000 WHERE id = new.id", "DELETE FROM c WHERE id = new.id",
    ])
    func aCopyThatDiffersFailsTheMove(change: String) throws {
        try fill()
        try other.write([.put("1")], in: moved.collection())
        try other.write([.remove("1")], in: moved.collection())
        let database = "\(moved.directory.path)/other.sqlite"
        try SQLiteDatabase.execute(
            "CREATE TRIGGER mine AFTER INSERT ON c WHEN new.id = '7' BEGIN \(change); END", in: database)
        try moved.begin(Placement(.planned(place, to: destination)))
        let progress = try moved.await(.failed)
        #expect(progress.reason?.contains(#"record "7""#) == true, "\(progress)")
        #expect(try moved.remembered() == Placement(.copying(place, to: destination)))
        let originals = moved.collection()
        #expect(try moved.records(of: 0, originals).count == 100)
        #expect(try main.write([.put("7", "7", "r")], in: moved.collection()).outcomeTexts == ["replaced"])

        try SQLiteDatabase.execute("DROP TRIGGER mine", in: database)
        moved.control.follow(moved.name, retriesFailed: true)
        try moved.awaitRest()
        let copies = moved.collection()
        #expect(try moved.records(of: 1, copies).count == 100)
        #expect(try moved.records(of: 1, copies).contains("7 7 r 0"))
    }

    @Test(arguments: [CollectionRule.Format.xml, .plist])
    func aRecordThatTheFormatCannotHoldFailsTheMove(format: CollectionRule.Format) throws {
        try fill()
        try main.write([.put("zz", #"{"n":null}"#)], in: moved.collection())
        let destination = CollectionPlace(backend: "other", format: format)
        try moved.begin(Placement(.planned(place, to: destination)))
        let progress = try moved.await(.failed)
        #expect(progress.reason?.contains(#"record "zz""#) == true)
        let copies = moved.collection(format)
        #expect(try moved.records(of: 1, copies).count > 0)

        // Cancelled.
        try moved.begin(Placement(.resident(place), obsolete: [destination]))
        try moved.awaitRest()
        #expect(try moved.remembered() == Placement(.resident(place)))
        let none = moved.collection(format)
        #expect(try moved.records(of: 1, none).isEmpty)
    }
}
