import CRUDModel
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import Testing

@testable import CRUDStorage

/// The states of a move, each of which the catalog remembers before anything is done in it.
@Suite struct MoveStateTests {
    private let moved: MovedBackends

    init() throws {
        moved = try MovedBackends()
    }

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
        try moved.begin()
        #expect(try moved.switchOver())
        _ = try moved.await(nil)
        let copy = moved.collection()
        #expect(try moved.records(of: 1, copy) == records)
        #expect(copy.indexes?.usable.count == 1, "the index is complete")
        // What is written from now on comes after what was copied.
        #expect(try other.write([.put("0", "{}", "r9")], in: copy).outcomeTexts == ["replaced"])
        #expect(try moved.records(of: 1, copy).first == "0 {} r9 0")
        let sequences = try moved.sequences(of: 1, copy)
        #expect(sequences.max() == sequences.first)
    }

    @Test func statesAreRememberedBeforeTheyAct() throws {
        try fill()
        let place = CollectionPlace(backend: "main", format: .json)
        let destination = CollectionPlace(backend: "other", format: .json)
        try moved.begin()
        let request = try moved.switches.take()
        #expect(try moved.remembered()?.move == .init(destination: destination, state: .copying))
        #expect(try moved.remembered()?.place == place)
        #expect(moved.catalog.placesOfMoving == [moved.name: place])
        let progress = try #require(try moved.await(.switching))
        #expect(progress.copied == 100 && progress.total == 100)

        // Written while the move waits for its switch: copied with the rest.
        try main.write([.put("new"), .put("5", "5", "r"), .remove("6")], in: moved.collection())
        #expect(request.begin())
        #expect(try request.move.switchOver())
        #expect(try moved.remembered()?.place == destination)
        #expect(try moved.remembered()?.originals == [place])
        #expect(try moved.remembered()?.move == nil)
        request.end(.success(true))
        _ = try moved.await(nil)
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
        try moved.begin()
        let progress = try #require(try moved.await(.failed))
        #expect(progress.reason?.contains("backend other as json") == true)
        #expect(try moved.remembered()?.move?.state == .planned)
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
        try moved.begin(to: .json, .copying)
        #expect(try moved.switchOver())
        _ = try moved.await(nil)
        let (old, new) = (moved.collection(), moved.collection())
        let withoutSequence = { (record: String) in record.split(separator: " ").dropLast().joined(separator: " ") }
        #expect(try moved.records(of: 1, new).map(withoutSequence) == moved.records(of: 0, old).map(withoutSequence))
    }

    /// The request of a move that is stopped is withdrawn.
    @Test func aStoppedMoveIsNotSwitched() throws {
        try fill(10)
        try moved.begin()
        let request = try moved.switches.take()
        moved.mover.stop()
        #expect(!request.begin())
        #expect(throws: CRUDError.self) { try request.move.switchOver() }
        #expect(try moved.remembered()?.move?.state == .copying)
        #expect(moved.mover.progress.isEmpty)
        #expect(try main.write([.put("later")], in: moved.collection()).outcomeTexts == ["applied"])
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
        try moved.begin()
        let progress = try #require(try moved.await(.failed))
        #expect(progress.reason?.contains(#"record "7""#) == true, "\(progress)")
        let place = CollectionPlace(backend: "main", format: .json)
        #expect(try moved.remembered()?.place == place && moved.remembered()?.originals == [])
        let originals = moved.collection()
        #expect(try moved.records(of: 0, originals).count == 100)
        #expect(try main.write([.put("7", "7", "r")], in: moved.collection()).outcomeTexts == ["replaced"])

        try SQLiteDatabase.execute("DROP TRIGGER mine", in: database)
        moved.mover.stop()
        try moved.begin(to: .json, .copying)
        #expect(try moved.switchOver())
        _ = try moved.await(nil)
        let copies = moved.collection()
        #expect(try moved.records(of: 1, copies).count == 100)
        #expect(try moved.records(of: 1, copies).contains("7 7 r 0"))
    }

    @Test(arguments: [CollectionRule.Format.xml, .plist])
    func aRecordThatTheFormatCannotHoldFailsTheMove(format: CollectionRule.Format) throws {
        try fill()
        try main.write([.put("zz", #"{"n":null}"#)], in: moved.collection())
        try moved.begin(to: format)
        let progress = try #require(try moved.await(.failed))
        #expect(progress.reason?.contains(#"record "zz""#) == true)
        let copies = moved.collection(format)
        #expect(try moved.records(of: 1, copies).count > 0)

        // Cancelled.
        moved.mover.stop()
        try moved.begin(to: format, .removing)
        _ = try moved.await(nil)
        #expect(try moved.remembered()?.move == nil)
        #expect(try moved.remembered()?.originals == [])
        let none = moved.collection(format)
        #expect(try moved.records(of: 1, none).isEmpty)
    }
}
