import CRUDTestSupport
import Testing

/// Who may read or write one collection does not learn how much is written to others of the same backend.
@Suite struct OtherWritesTests {
    private static let daemon = Result {
        try Daemon(
            Configuration(
                backends: """
                    main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
                    child: {plugin: memory, isolation: process}
                    """,
                collections: """
                    "main*": {backend: main, changes: true}
                    "child*": {backend: child, changes: true}
                    """, loops: 1))
    }

    /// How many characters two texts have in common, each at its place.
    private static func agreement(_ first: String, _ second: String) -> Int {
        zip(first.utf8, second.utf8).count { $0 == $1 }
    }

    @Test(arguments: ["main", "child"])
    func cursorsDoNotCount(backend: String) throws {
        let connection = try Self.daemon.get().connect()
        #expect(try connection.upsert("\(backend) read", "a", "1").result != nil)
        var cursors = [try connection.changes("\(backend) read", after: "now").cursor]
        for count in 1...3 {
            for id in 0..<count { #expect(try connection.upsert("\(backend) other", "\(id)", "1").result != nil) }
            cursors.append(try connection.changes("\(backend) read", after: "now").cursor)
        }
        cursors.append(try connection.changes("\(backend) read", after: "now").cursor)
        for (cursor, next) in zip(cursors, cursors.dropFirst()) {
            #expect(cursor.utf8.count == next.utf8.count && Self.agreement(cursor, next) < 16, "\(cursor), \(next)")
        }
        for cursor in cursors { #expect(try connection.changes("\(backend) read", after: cursor).ids.isEmpty) }
        #expect(try connection.upsert("\(backend) read", "b", "1").result != nil)
        for cursor in cursors { #expect(try connection.changes("\(backend) read", after: cursor).ids == ["b"]) }
    }

    @Test(arguments: ["main", "child"])
    func revisionsDoNotCount(backend: String) throws {
        let connection = try Self.daemon.get().connect()
        func revision() throws -> String {
            try #require(try connection.upsert("\(backend) own", "a", "1").result?["revision"]?.string)
        }
        var revisions = [try revision()]
        for count in 0...3 {
            for id in 0..<count { #expect(try connection.upsert("\(backend) more", "\(id)", "1").result != nil) }
            revisions.append(try revision())
        }
        for (revision, next) in zip(revisions, revisions.dropFirst()) {
            #expect(revision.utf8.count == next.utf8.count, "\(revision), \(next)")
            #expect(Self.agreement(revision, next) < 10, "\(revision), \(next)")
        }
    }
}
