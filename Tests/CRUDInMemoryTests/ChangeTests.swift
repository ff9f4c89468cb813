import CRUDInMemory
import CRUDTestSupport
import Testing

/// Following what changes.
@Suite(.timeLimit(.minutes(1))) struct ChangeTests {
    @Test(arguments: Backing.allCases)
    func beginsWithEveryRecordAndContinuesWithWhatChanges(_ backing: Backing) async throws {
        let collections = try await backing.open(changes: true)
        let users = collections.repository("users", of: User.self)
        for id in ["ada", "bob", "eve"] { try await users.create(User(id: id, name: id, age: 36)) }
        try await users.delete(id: "eve")
        try await users.modify(id: "ada") { $0.age += 1 }

        var changes = users.changes(after: .start).makeAsyncIterator()
        #expect(try await changes.next()?.text == "+bob")
        let ada = try await users.readVersioned(id: "ada")
        guard case .saved(let record) = try await changes.next()?.kind else { throw Failure("ada is missing") }
        #expect(record.item == ada.item)
        #expect(record.revision == ada.revision)

        try await users.delete(id: "ada")
        try await users.delete(id: "bob")
        try await users.upsert(User(id: "ada", name: "Ada II", age: 0))
        #expect(try await changes.next()?.text == "-bob")
        #expect(try await changes.next()?.text == "+ada")
        // Nothing more: it waits.
        let next = Task { [changes] in
            var changes = changes
            return try await changes.next()?.text
        }
        try await users.delete(id: "ada")
        #expect(try await next.value == "-ada")
    }

    @Test(arguments: Backing.allCases)
    func beginsNow(_ backing: Backing) async throws {
        let collections = try await backing.open(changes: true)
        let store = collections.store("c")
        try await store.create(id: "old", item: 1)
        let page = try await store.changes(ChangeQuery(after: .now))
        #expect(page.changes.isEmpty)
        #expect(!page.hasMore)
        try await store.create(id: "new", item: 2)
        var changes = store.changes(after: page.cursor).makeAsyncIterator()
        #expect(try await changes.next()?.text == "+new")
    }

    @Test(arguments: Backing.allCases)
    func resumesAfterACursor(_ backing: Backing) async throws {
        let collections = try await backing.open(changes: true)
        let store = collections.store("c")
        for number in 0..<5 { try await store.create(id: "\(number)", item: number) }
        var (texts, cursor) = ([String](), Cursor.start)
        repeat {
            let page = try await store.changes(ChangeQuery(after: cursor, limit: 2))
            #expect(page.changes.count <= 2)
            texts += page.changes.map { Change($0, cursor: page.cursor).text }
            // A record that has been shown is shown again, and so is its end.
            if texts.count == 2 { try await store.delete(id: "0") }
            if texts.count == 4 { try await store.update(id: "4", item: 5) }
            cursor = Cursor(page.cursor.text)
            if page.changes.isEmpty { break }
        } while true
        #expect(texts == ["+0", "+1", "+2", "+3", "-0", "+4"])
    }

    @Test(arguments: Backing.allCases)
    func endsAtTheDeadline(_ backing: Backing) async throws {
        let collections = try await backing.open(changes: true)
        let store = collections.store("c")
        let error = await expectError(.timedOut) {
            try await CRUDClient.withDeadline(in: .milliseconds(50)) {
                for try await _ in store.changes() {}
            }
        }
        #expect(error?.cause is DeadlineExceeded)
    }

    @Test(arguments: Backing.allCases)
    func tellsWhichRecordsMatch(_ backing: Backing) async throws {
        struct Name: Decodable, Equatable { var name: String }
        let collections = try await backing.open(changes: true)
        let users = collections.repository("users", of: User.self)
        for (id, age) in [("a/ada", 36), ("a/bob", 10), ("b/eve", 50)] {
            try await users.create(User(id: id, name: id, age: age))
        }
        var adults = users.changes { $0.age >= 18 }.makeAsyncIterator()
        let first = try await [adults.next(), adults.next(), adults.next()]
        #expect(first.map(\.?.text) == ["+a/ada", "?a/bob", "+b/eve"])
        try await users.modify(id: "b/eve") { $0.age = 5 }
        #expect(try await adults.next()?.text == "?b/eve")

        let query = Query<User>().withIDs(startingWith: "a/").selecting(\.name)
        var names = users.changes(query, as: Name.self).makeAsyncIterator()
        guard case .saved(let ada) = try await names.next()?.kind else { throw Failure("ada is missing") }
        #expect(ada.item == Name(name: "a/ada"))
        #expect(try await names.next()?.text == "+a/bob")
        try await users.delete(id: "b/eve")
        try await users.delete(id: "a/bob")
        #expect(try await names.next()?.text == "-a/bob")
    }

    /// A view that applies a page and its cursor in one transaction, and is stopped anywhere, equals its collection.
    @Test(arguments: Backing.allCases)
    func aViewAppliesAPageAndItsCursorAtOnce(_ backing: Backing) async throws {
        let collections = try await backing.open(changes: true)
        let users = collections.repository("users", of: User.self)
        let view = collections.repository("names", of: String.self)
        func follow(until end: String) async throws {
            var cursor = Cursor.start
            if try await view.exists(id: "cursor") { cursor = Cursor(try await view.read(id: "cursor")) }
            for try await page in users.changePages(after: cursor, limit: 3) {
                #expect(page.changes.count <= 3)
                try await view.transaction { view in
                    for change in page.changes {
                        switch change {
                        case .saved(let user): try view.upsert(user.item.name, id: "user/\(user.id)")
                        case .removed(let id), .unmatched(let id): try view.upsert("", id: "user/\(id)")
                        }
                    }
                    try view.upsert(page.cursor.text, id: "cursor")
                }
                if page.changes.contains(where: { $0.id == end }) { return }
            }
        }
        for number in 0..<10 { try await users.create(User(id: "\(number)", name: "n\(number)", age: number)) }
        try await follow(until: "4")
        try await users.delete(id: "2")
        try await users.modify(id: "3") { $0.name = "III" }
        try await users.create(User(id: "end", name: "end", age: 0))
        try await follow(until: "end")
        let names = try await view.fetchVersioned(Query().withIDs(startingWith: "user/"))
        #expect(names.first { $0.id == "user/2" }?.item == "" && names.first { $0.id == "user/3" }?.item == "III")
        let expected = try await users.fetchAll().map(\.name)
        #expect(names.map(\.item).filter { !$0.isEmpty }.sorted() == expected.sorted())
    }

    @Test(arguments: Backing.allCases)
    func theFirstPageComesAtOnce(_ backing: Backing) async throws {
        let collections = try await backing.open(changes: true)
        let users = collections.repository("users", of: User.self)
        var pages = users.changePages(after: .start).makeAsyncIterator()
        let empty = try await pages.next()
        #expect(empty?.changes.isEmpty == true && empty?.hasMore == false)
        let next = Task { [pages] in
            var pages = pages
            return try await pages.next()
        }
        try await users.create(User(id: "ada", name: "", age: 1))
        #expect(try await next.value?.changes.map(\.id) == ["ada"])
        var invalid = users.changePages(Query().limited(to: 1)).makeAsyncIterator()
        await expectError(.invalidQuery) { try await invalid.next() }
        #expect(try await invalid.next() == nil)
    }

    @Test(arguments: Backing.allCases)
    func refusesWhatItCannotFollow(_ backing: Backing) async throws {
        let collections = try await backing.open(changes: true)
        let users = collections.repository("users", of: User.self)
        for query in [Query<User>().sorted(by: \.age), Query().limited(to: 1)] {
            var changes = users.changes(query).makeAsyncIterator()
            await expectError(.invalidQuery) { try await changes.next() }
            #expect(try await changes.next() == nil)
        }
        await expectError(.invalidQuery) { try await users.store.changes(ChangeQuery(after: Cursor("?"))) }
        let limit = await expectError(.invalidParams) { try await users.store.changes(ChangeQuery(limit: 0)) }
        #expect(limit?.details.member == "limit")
        for wait in [-1, 301] {
            let error = await expectError(.invalidParams) {
                try await users.store.changes(ChangeQuery(wait: .seconds(wait)))
            }
            #expect(error?.details.member == "wait")
        }
    }

    @Test(arguments: Backing.allCases)
    func honoursCancellation(_ backing: Backing) async throws {
        let collections = try await backing.open(changes: true)
        let store = collections.store("c")
        let task = Task {
            for try await _ in store.changes(after: .now) {}
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    /// Followers that begin again and again, each with a state of its own, beside a client that writes.
    @Test(arguments: Backing.allCases)
    func everyFollowerEndsWithTheStateOfTheCollection(_ backing: Backing) async throws {
        let collections = try await backing.open(changes: true)
        let users = collections.repository("users", of: User.self)
        try await withThrowingTaskGroup { group in
            for round in 0..<4 {
                group.addTask {
                    let query = [
                        Query<User>(), Query { $0.age >= 50 }, Query().withIDs(startingWith: "1"),
                        Query { $0.age < 50 }.withIDs(startingWith: "1"),
                    ][round]
                    let state = try await Self.follow(users, query, restartingAfter: 3 + round)
                    #expect(state == (try await Self.state(users, query)), "\(round)")
                }
            }
            group.addTask {
                var random = SeededGenerator(seed: 7)
                for _ in 0..<300 {
                    let id = String(Int.random(in: 0..<20, using: &random))
                    let user = User(id: id, name: "", age: Int.random(in: 0..<100, using: &random))
                    let isDeleted = Int.random(in: 0..<4, using: &random) == 0
                    if isDeleted, try await users.exists(id: id) {
                        try await users.delete(id: id)
                    } else {
                        try await users.upsert(user)
                    }
                }
                try await users.create(User(id: "1-end", name: "", age: 100))
            }
            try await group.waitForAll()
        }
    }

    /// What a follower knows at the end, which is the creation of `1-end`.
    private static func follow(
        _ users: Repository<User>, _ query: Query<User>, restartingAfter maximum: Int
    ) async throws -> [String: User] {
        var (state, cursor) = ([String: User](), Cursor.start)
        while true {
            var count = 0
            for try await change in users.changes(query, after: cursor) {
                if case .saved(let record) = change.kind {
                    state[record.id] = record.item
                } else {
                    state[change.id] = nil
                }
                if change.id == "1-end" { return state }
                count += 1
                // A page is processed as a whole, or it comes again.
                if change.cursor.text != cursor.text, count >= maximum {
                    cursor = change.cursor
                    break
                }
            }
        }
    }

    private static func state(_ users: Repository<User>, _ query: Query<User>) async throws -> [String: User] {
        Dictionary(uniqueKeysWithValues: try await users.fetch(query).map { ($0.id, $0) })
    }
}

extension Change {
    /// `+ada`, `-ada`, `?ada`: saved, removed, unmatched.
    fileprivate var text: String {
        switch kind {
        case .saved(let record): "+\(record.id)"
        case .removed(let id): "-\(id)"
        case .unmatched(let id): "?\(id)"
        }
    }
}
