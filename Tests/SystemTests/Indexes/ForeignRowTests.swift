import CRUDTestSupport
import Testing

/// Rows of an indexed collection that somebody else changes in the database.
@Suite struct ForeignRowTests {
    @Test(arguments: [IndexedCollection.Place.sqlite, .sqliteInChild])
    func areFoundThroughTheIndex(place: IndexedCollection.Place) throws {
        let collection = try IndexedCollection(place, records: 1000)
        try collection.addIndexes()
        try collection.awaitIndexes()
        let revision = try #require(try collection.connection.read("c", "7").result?["revision"]?.string)
        try collection.execute(
            """
            UPDATE c SET item = json_set(item, '$.n', 5000) WHERE id = '7';
            INSERT INTO c (id, item) VALUES ('new', '{"n":5000,"s":"s3"}');
            INSERT OR REPLACE INTO c (id, item) VALUES ('8', '{"n":5000}');
            UPDATE c SET id = 'renamed' WHERE id = '9';
            DELETE FROM c WHERE id = '10'
            """)
        #expect(try collection.find("n", "5000") == (["7", "8", "new"], "n"))
        for number in [7, 8, 10] { #expect(try collection.find("n", "\(number)") == ([], "n")) }
        #expect(try collection.find("n", "9") == (["renamed"], "n"))
        #expect(try collection.find("n", "11") == (["11"], "n"))
        let sorted = try collection.connection.query(
            "c", #"{"sort":[{"property":"n","order":"desc"}],"limit":4,"explain":true}"#)
        let records = try #require(sorted.result?["records"]?.elements)
        #expect(records.compactMap { $0["id"]?.string } == ["7", "8", "new", "999"])
        #expect(sorted.result?["plan"]?["index"]?.string == "n")
        let stale = try collection.connection.update("c", "7", "{}", ifRevision: revision)
        #expect(stale.error?.name == "revision_mismatch")
        // From here on they have keys of their own.
        #expect(try collection.connection.update("c", "new", #"{"n":6000}"#).result != nil)
        #expect(try collection.find("n", "6000") == (["new"], "n"))
        #expect(try collection.find("n", "5000") == (["7", "8"], "n"))
        try collection.stop()
    }

    @Test(arguments: [IndexedCollection.Place.sqlite, .sqliteInChild])
    func areFoundWhenTheyChangeDuringABuild(place: IndexedCollection.Place) throws {
        let collection = try IndexedCollection(place, records: 4000)
        try collection.addIndexes()
        try collection.awaitProgress(500)
        // Records that have their keys already, such that have not, and some whose keys are just being made of the
        // items as they were.
        try collection.execute(
            """
            UPDATE c SET item = json_set(item, '$.n', 9000) WHERE item ->> 'n' % 10 = 3;
            INSERT INTO c (id, item) VALUES ('new', '{"n":9000}')
            """)
        let expected = ((0..<4000).filter { $0 % 10 == 3 }.map(String.init) + ["new"]).sorted()
        #expect(try collection.find("n", "9000").ids == expected)
        try collection.awaitIndexes()
        #expect(try collection.find("n", "9000") == (expected, "n"))
        #expect(try collection.find("n", "103") == ([], "n"))
        try collection.stop()
    }
}
