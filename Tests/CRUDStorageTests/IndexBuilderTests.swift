import CRUDModel
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import Testing

@testable import CRUDStorage

/// Indexes that are filled in the background.
@Suite struct IndexBuilderTests {
    private let test: IndexedBackend

    init() throws { test = try IndexedBackend() }

    /// Makes records `0` to `count - 1` with a number `n`, in a collection without indexes.
    private func makeRecords(_ count: Int, in name: String = "clients") throws {
        let changes = (0..<count).map { Change.put("\($0)", #"{"n":\#($0),"name":"client \#($0)"}"#) }
        try test.write(changes, in: collection(name))
    }

    private func isComplete(_ collection: BackendCollection) -> Bool {
        collection.indexes.map { $0.usable.count == $0.paths.count } ?? false
    }

    // MARK: Building

    @Test func recordsOfANewIndexGetTheirKeys() throws {
        try makeRecords(300)
        let clients = collection("clients", indexes: ["n"])
        try test.open(clients)
        try test.wait { isComplete(clients) }
        #expect(clients.indexes?.usable == [QueryIndex(path: try #require(PropertyPath(text: "n")), number: 0)])
        #expect(clients.indexes?.progress.isEmpty == true)
        #expect(test[.keysSet] == 300)
        #expect(try test.ids(RecordScan(.unkeyed(index: 0)), in: clients) == [])
        #expect(try test.ids(RecordScan(.key(index: 0)), in: clients) == (0..<300).map { "\($0)" })
        #expect(try test.ids(0, equal: #"{"n":250}"#, in: clients) == ["250"])
    }

    @Test func recordsOfAnOpenIndexGetTheirKeysWhenTheyAreWritten() throws {
        let clients = collection("clients", indexes: ["n", "name"])
        try test.write([.put("a", #"{"n":2,"name":"x"}"#), .put("b", #"{"n":1}"#)], in: clients)
        try test.write([.put("a", #"{"n":0,"name":"y"}"#)], in: clients)
        try test.wait { isComplete(clients) }
        #expect(try test.ids(RecordScan(.key(index: 0)), in: clients) == ["a", "b"])
        #expect(try test.ids(1, equal: #"{"name":"y"}"#, in: clients) == ["a"])
        #expect(try test.ids(1, equal: #"{"name":"x"}"#, in: clients) == [])
        #expect(try test.ids(1, equal: "{}", in: clients) == ["b"], "a missing value has a key, too")
        #expect(test[.keysSet] == 0)
    }

    @Test func buildMakesTheKeysOfAllIndexesAtOnce() throws {
        try makeRecords(200)
        let clients = collection("clients", indexes: ["n", "name", "missing"])
        try test.open(clients)
        try test.wait { isComplete(clients) }
        #expect(test[.keysSet] == 200)
        for index in 0..<3 { #expect(try test.ids(RecordScan(.unkeyed(index: index)), in: clients) == []) }
        #expect(try test.ids(1, equal: #"{"name":"client 7"}"#, in: clients) == ["7"])
    }

    /// An index that lacks a few keys only finds the others among all candidates: it serves before they are made.
    @Test func nearlyCompleteIndexServesAtOnce() throws {
        try makeRecords(10)
        test.closeGate()
        let clients = collection("clients", indexes: ["n"])
        try test.open(clients)
        #expect(isComplete(clients))
        try test.waitForKeys()
        test.openGate()
        try test.wait { test[.keysSet] == 10 }
    }

    // MARK: In the background

    @Test func clientsAreServedBetweenTheStepsOfABuild() throws {
        try makeRecords(1000)
        test.closeGate()
        let clients = collection("clients", indexes: ["n"])
        try test.open(clients)
        try test.waitForKeys()
        #expect(!isComplete(clients))
        let inbox = try Inbox<WorkItem>()
        let write = test.backend.submit([.put("7", #"{"n":-1}"#, "r2")], in: clients, to: inbox)
        test.pass()
        _ = try inbox.take()
        #expect(write.outcomeTexts == ["replaced"])
        #expect(test[.keysSet] < 1000)
        test.openGate()
        try test.wait { isComplete(clients) }
        #expect(test[.keyWrites] > 1)
        #expect(try test.ids(0, equal: #"{"n":-1}"#, in: clients) == ["7"], "a client's write has its own keys")
        #expect(try test.ids(0, equal: #"{"n":7}"#, in: clients) == [])
    }

    @Test func progressIsVisible() throws {
        try makeRecords(1000)
        test.closeGate()
        let clients = collection("clients", indexes: ["n", "name"])
        try test.open(clients)
        try test.waitForKeys()
        test.pass()
        try test.waitForKeys()
        let done = test[.keysSet]
        let progress = try #require(clients.indexes?.progress)
        #expect(0 < done && done < 1000)
        #expect(progress.map(\.property) == ["n", "name"])
        #expect(progress.allSatisfy { $0.total == 1000 && $0.indexed == done })
        test.openGate()
        try test.wait { isComplete(clients) }
        #expect(clients.indexes?.progress.isEmpty == true)
    }

    // MARK: Restarts

    @Test func buildResumesAfterARestart() throws {
        try makeRecords(1000)
        test.closeGate()
        let before = collection("clients", indexes: ["n"])
        try test.open(before)
        try test.waitForKeys()
        test.pass()
        try test.waitForKeys()
        test.stopAfterStep()
        let done = test[.keysSet]
        #expect(0 < done && done < 1000)

        try test.restart()
        let clients = collection("clients", indexes: ["n"])
        try test.open(clients)
        try test.waitForKeys()
        #expect(clients.indexes?.progress.isEmpty == false)
        test.openGate()
        try test.wait { isComplete(clients) }
        #expect(test[.keysSet] == 1000, "what had its keys has not been looked at again")
        #expect(try test.ids(RecordScan(.unkeyed(index: 0)), in: clients) == [])
    }

    @Test func resumedBuildShowsWhatHasBeenDoneBefore() throws {
        try makeRecords(1000)
        test.closeGate()
        try test.open(collection("clients", indexes: ["n"]))
        try test.waitForKeys()
        test.stopAfterStep()
        let done = test[.keysSet]

        try test.restart()
        let clients = collection("clients", indexes: ["n"])
        try test.open(clients)
        try test.waitForKeys()
        test.pass()
        try test.waitForKeys()
        let progress = try #require(clients.indexes?.progress.first)
        #expect(progress.total == 1000)
        #expect(progress.indexed == test[.keysSet] && progress.indexed > done)
    }

    @Test func completeIndexIsNotBuiltAgain() throws {
        try makeRecords(300)
        let before = collection("clients", indexes: ["n"])
        try test.open(before)
        try test.wait { isComplete(before) }
        try test.restart()
        let clients = collection("clients", indexes: ["n"])
        try test.open(clients)
        #expect(isComplete(clients), "it serves the first request")
        #expect(test.backend.drain(within: .seconds(30)))
        #expect(test[.keysSet] == 300)
    }

    // MARK: Records without a key

    @Test func valueThatIsTooLongStaysUnkeyed() throws {
        let long = String(repeating: "x", count: 600)
        try makeRecords(100)
        try test.write([.put("long", #"{"name":"\#(long)","n":5}"#)], in: collection("clients"))
        let clients = collection("clients", indexes: ["name", "n"])
        try test.open(clients)
        try test.wait { isComplete(clients) && test[.keysSet] >= 101 }
        try test.write([.put("longer", #"{"name":"\#(long)y"}"#)], in: clients)
        #expect(try test.ids(RecordScan(.unkeyed(index: 0)), in: clients) == ["long", "longer"])
        #expect(try test.ids(RecordScan(.unkeyed(index: 1)), in: clients) == [])
        #expect(try test.ids(1, equal: #"{"n":5}"#, in: clients) == ["5", "long"])
    }

    @Test func itemThatCannotBeDecodedStaysUnkeyed() throws {
        try makeRecords(100)
        try test.write([.put("bad", "{"), .put("worse", "\0")], in: collection("clients"))
        let clients = collection("clients", indexes: ["n"])
        try test.open(clients)
        try test.wait { isComplete(clients) && test[.keysSet] == 100 }
        #expect(try test.ids(RecordScan(.unkeyed(index: 0)), in: clients) == ["bad", "worse"])
    }

    /// Many of them do not keep an index from being complete.
    @Test func buildEndsWithManyUnkeyedRecords() throws {
        let long = String(repeating: "x", count: 600)
        try test.write((0..<300).map { .put("\($0)", #"{"name":"\#(long)"}"#) }, in: collection("clients"))
        let clients = collection("clients", indexes: ["name", "n"])
        try test.open(clients)
        try test.wait { isComplete(clients) }
        #expect(try test.ids(RecordScan(.unkeyed(index: 0)), in: clients).count == 300)
        #expect(try test.ids(RecordScan(.unkeyed(index: 1)), in: clients) == [])
    }

    // MARK: Rebuilding

    private func reindex(_ collection: BackendCollection) throws -> CRUDError? {
        let inbox = try Inbox<WorkItem>()
        test.backend.submit(.reindex(ReindexRequest(of: collection) { inbox.put($0) }))
        return try inbox.take().failure
    }

    @Test func rebuildRepairsWrongKeys() throws {
        try makeRecords(300)
        let clients = collection("clients", indexes: ["n"])
        try test.open(clients)
        try test.wait { isComplete(clients) }
        try test.write([.setKeys("7", try IndexedBackend.keys(of: #"{"n":-5}"#, in: clients))], in: clients)
        #expect(try test.ids(0, equal: #"{"n":-5}"#, in: clients) == ["7"])
        #expect(try test.ids(0, equal: #"{"n":7}"#, in: clients) == [])

        test.closeGate()
        #expect(try reindex(clients) == nil)
        #expect(!isComplete(clients), "it does not serve meanwhile")
        try test.waitForKeys()
        test.openGate()
        try test.wait { isComplete(clients) }
        #expect(try test.ids(0, equal: #"{"n":-5}"#, in: clients) == [])
        #expect(try test.ids(0, equal: #"{"n":7}"#, in: clients) == ["7"])
        #expect(try test.ids(RecordScan(.key(index: 0)), in: clients).count == 300)
    }

    @Test func rebuildResumesAfterARestart() throws {
        // More than the longest step has.
        try makeRecords(1500)
        let before = collection("clients", indexes: ["n"])
        try test.open(before)
        try test.wait { isComplete(before) }
        test.closeGate()
        #expect(try reindex(before) == nil)
        try test.waitForKeys()
        test.stopAfterStep()

        try test.restart()
        let clients = collection("clients", indexes: ["n"])
        try test.open(clients)
        #expect(test[.keysSet] < 3000)
        test.openGate()
        try test.wait { isComplete(clients) && test[.keysSet] == 3000 }
        #expect(try test.ids(RecordScan(.unkeyed(index: 0)), in: clients) == [])
    }

    @Test func rebuildOfWhatHasNoIndexesDoesNothing() throws {
        try makeRecords(10)
        #expect(try reindex(collection("clients")) == nil)
        #expect(try reindex(collection("missing", indexes: ["n"])) == nil)
        #expect(test.backend.drain(within: .seconds(30)))
        #expect(test[.keysSet] == 0)
    }

    // MARK: Other indexes

    /// A reload may open a collection with other indexes while the old ones are being built.
    @Test func replacedIndexesAreNotBuiltAnyMore() throws {
        try makeRecords(1000)
        test.closeGate()
        let before = collection("clients", indexes: ["n"])
        try test.open(before)
        try test.waitForKeys()
        let old = try #require(before.indexes)
        let clients = collection("clients", indexes: ["name", "n"])
        try test.open(clients, afterStep: true)
        #expect(old.usable.isEmpty)
        test.openGate()
        try test.wait { isComplete(clients) }
        #expect(old.usable.isEmpty)
        #expect(try test.ids(0, equal: #"{"name":"client 30"}"#, in: clients) == ["30"])
        #expect(try test.ids(1, equal: #"{"n":30}"#, in: clients) == ["30"])
    }

    @Test func objectsOfOneCollectionShareItsIndexes() throws {
        try makeRecords(300)
        let (first, second) = (collection("clients", indexes: ["n"]), collection("clients", indexes: ["n"]))
        try test.open(first)
        try test.open(second)
        #expect(first.indexes === second.indexes)
        try test.wait { isComplete(first) }
        #expect(isComplete(second))
        #expect(test[.keysSet] == 300)
    }

    /// A collection whose records cannot be scanned is tried again later; others come first.
    @Test func failingBuildDoesNotBlockOthers() throws {
        try makeRecords(300, in: "broken")
        try makeRecords(300)
        test.failScans(true)
        let (broken, clients) = (collection("broken", indexes: ["n"]), collection("clients", indexes: ["n"]))
        try test.open(broken)
        try test.open(clients)
        try test.wait { isComplete(clients) }
        #expect(!isComplete(broken))
        test.failScans(false)
        try test.wait { isComplete(broken) }
        #expect(test[.keysSet] == 600)
    }
}
