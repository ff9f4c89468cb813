import CRUDTestSupport
import Glibc
import Testing

/// Indexes that are built in the background, beside requests.
@Suite struct IndexBuildTests {
    /// All indexes together take longer than a call of the child may.
    @Test(arguments: [
        (IndexedCollection.Place.sqlite, 6000), (.sqliteInChild, 20_000), (.memory, 12_000), (.memoryInChild, 12_000),
        (.postgresql, 3000), (.postgresqlInChild, 3000),
    ])
    func requestsAreServedDuringABuild(place: IndexedCollection.Place, count: Int) throws {
        let collection = try IndexedCollection(place, records: count)
        let connection = collection.connection
        let child = try collection.backend["pid"]?.integer
        #expect((child != nil) == place.isInChild)
        #expect(try collection.find("n", "7") == (["7"], nil))
        try collection.addIndexes()
        var known = try collection.awaitProgress().indexed
        var round = 0
        while let progress = try collection.progress().first {
            #expect(progress.total == count)
            #expect(known <= progress.indexed && progress.indexed <= progress.total, "\(progress) after \(known)")
            known = progress.indexed
            round += 1
            let id = "\(round * 37 % count)"
            #expect(try connection.item("c", id) == IndexedCollection.item(round * 37 % count))
            // A record that moves within the index is found by its new value alone.
            #expect(try connection.update("c", "5", #"{"n":-\#(round),"s":"s5"}"#).result != nil)
            #expect(try collection.find("n", "-\(round)").ids == ["5"])
            #expect(try collection.find("n", "-\(round - 1)").ids.isEmpty || round == 1)
        }
        #expect(round > 0)
        #expect(try collection.find("n", "-\(round)") == (["5"], "n"))
        #expect(try connection.update("c", "5", IndexedCollection.item(5)).result != nil)
        try collection.checkIndexes()
        #expect(try collection.backend["pid"]?.integer == child)
        #expect(try collection.backend["restarts"]?.integer == (place.isInChild ? 0 : nil))
        try collection.stop()
    }

    // MARK: Kills

    private static let durable = [
        IndexedCollection.Place.sqlite, .sqliteInChild, .postgresql, .postgresqlInChild,
    ]

    @Test(arguments: durable)
    func resumesAfterAKillOfTheDaemon(place: IndexedCollection.Place) throws {
        let collection = try IndexedCollection(place, records: 12_000)
        try collection.addIndexes()
        let before = try collection.awaitProgress(1500)
        try collection.kill()
        let after = try collection.awaitProgress()
        #expect(after.indexed >= before.indexed && after.total == collection.count, "\(after) after \(before)")
        try collection.awaitIndexes()
        try collection.checkIndexes()
        try collection.stop()
    }

    @Test(arguments: [IndexedCollection.Place.sqliteInChild, .postgresqlInChild])
    func resumesAfterAKillOfTheChild(place: IndexedCollection.Place) throws {
        let collection = try IndexedCollection(place, records: 6000)
        try collection.addIndexes()
        let before = try collection.awaitProgress(1500)
        let child = try #require(try collection.backend["pid"]?.integer)
        Glibc.kill(pid_t(child), SIGKILL)
        try ChildDaemon.awaitReady("main", notWith: pid_t(child), collection.connection)
        let after = try collection.awaitProgress()
        #expect(after.indexed >= before.indexed)
        try collection.awaitIndexes()
        try collection.checkIndexes()
        #expect(try collection.backend["restarts"]?.integer == 1)
        try collection.stop()
    }

    /// Nothing is built again that was complete.
    @Test(arguments: durable)
    func completeIndexesServeAfterAKill(place: IndexedCollection.Place) throws {
        let collection = try IndexedCollection(place, records: 500)
        try collection.addIndexes()
        try collection.awaitIndexes()
        try collection.kill()
        #expect(try collection.awaitIndexes() == 0)
        try collection.checkIndexes()
        try collection.stop()
    }

    // MARK: Rebuilding

    @Test(arguments: IndexedCollection.Place.allCases)
    func reindexBuildsAllIndexesAgain(place: IndexedCollection.Place) throws {
        let collection = try IndexedCollection(place, records: 4000)
        try collection.addIndexes()
        try collection.awaitIndexes()
        #expect(try collection.connection.call("collection.reindex", #"{"collection":"c"}"#).result?.text == "{}")
        let progress = try collection.progress()
        let found = try collection.find("n", "1999")
        #expect(found.ids == ["1999"])
        if try !collection.progress().isEmpty {
            #expect(progress.map(\.property) == ["n", "s"])
            #expect(found.index == nil, "an index does not serve before it is complete")
        }
        try collection.awaitIndexes()
        try collection.checkIndexes()
        try collection.stop()
    }

    @Test func reindexRepairsKeys() throws {
        let collection = try IndexedCollection(.sqlite, records: 500)
        try collection.addIndexes()
        try collection.awaitIndexes()
        // The keys of two records change places.
        try collection.execute(
            """
            CREATE TEMP TABLE two AS SELECT * FROM c WHERE id IN ('7', '8');
            UPDATE c SET crudd_key_1 = (SELECT crudd_key_1 FROM two WHERE two.id <> c.id) WHERE id IN ('7', '8')
            """)
        #expect(try collection.find("n", "7").ids.isEmpty)
        _ = try collection.connection.call("collection.reindex", #"{"collection":"c"}"#)
        try collection.awaitIndexes()
        #expect(try collection.find("n", "7") == (["7"], "n"))
        try collection.checkIndexes()
        try collection.stop()
    }

    @Test func reindexOfACollectionWithoutIndexesDoesNothing() throws {
        let daemon = try Daemon(Configuration(collections: "c: {backend: main}"))
        let connection = try daemon.connect()
        for _ in 0..<2 {
            #expect(try connection.call("collection.reindex", #"{"collection":"c"}"#).result?.text == "{}")
            #expect(try connection.upsert("c", "a", "1").result != nil)
        }
        let error = try connection.call("collection.reindex", #"{"collection":"d"}"#).error
        #expect(error?.name == "collection_not_found")
        try daemon.stop()
    }
}
