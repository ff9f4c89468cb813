import CRUDInMemory
import Testing

/// Pages, records with revisions, and conditions that are added.
@Suite struct PageTests {
    private static func users(_ backing: Backing, _ count: Int = 25) async throws -> (Collections, Repository<User>) {
        let collections = try await backing.open()
        let users = collections.repository("users", of: User.self)
        for number in 0..<count {
            let id = String("0\(number)".suffix(2))
            try await users.create(User(id: id, name: number.isMultiple(of: 2) ? "even" : "odd", age: number))
        }
        return (collections, users)
    }

    @Test(arguments: Backing.allCases)
    func readsPageAfterPage(_ backing: Backing) async throws {
        let (collections, users) = try await Self.users(backing)
        let query = Query<User> { $0.name == "odd" }.sorted(by: \.age, .descending)
        var (ages, cursors) = ([Int](), [String]())
        var cursor: Cursor?
        repeat {
            let page = try await users.page(query, after: cursor.map { Cursor($0.text) }, limit: 5)
            #expect(page.records.count <= 5)
            for record in page.records {
                #expect(record.revision == (try await users.readVersioned(id: record.id)).revision)
            }
            ages += page.records.map(\.item.age)
            cursor = page.next
            cursors += page.next.map { [$0.text] } ?? []
        } while cursor != nil
        #expect(ages == (0..<25).reversed().filter { !$0.isMultiple(of: 2) })
        #expect(cursors.count >= 2)
        // More than the store allows is what it allows.
        #expect(try await users.page(limit: 1_000_000).records.count == 25)
        #expect(try await users.page(limit: 3) { $0.age >= 10 }.records.map(\.item.age) == [10, 11, 12])

        struct Name: Decodable, Equatable { var name: String }
        let names = try await users.page(Query().selecting(\.name), as: Name.self, limit: 2)
        #expect(names.records.map(\.item) == [Name(name: "even"), Name(name: "odd")])

        let mine = try #require(try await users.page(query, limit: 5).next)
        await expectError(.invalidQuery) { try await users.page(Query { $0.name == "even" }, after: mine, limit: 5) }
        await expectError(.invalidQuery) { try await users.page(Query().limited(to: 3)) }
        await expectError(.invalidParams) { try await users.page(limit: 0) }
        _ = collections
    }

    @Test(arguments: Backing.allCases)
    func readsRecordsWithTheirRevisions(_ backing: Backing) async throws {
        let (collections, users) = try await Self.users(backing)
        let old = try await users.fetchVersioned { $0.age < 3 }
        #expect(old.map(\.id) == ["00", "01", "02"] && old.map(\.item.age) == [0, 1, 2])
        try await users.update(old[1].item, ifRevision: old[1].revision)
        await expectError(.revisionMismatch) { try await users.update(old[1].item, ifRevision: old[1].revision) }
        #expect(try await users.fetchVersioned(Query().sorted(by: \.age, .descending).limited(to: 2)).count == 2)
        #expect(try await users.fetchVersioned().count == 25)
        _ = collections
    }

    @Test(arguments: Backing.allCases)
    func conditionsAreAdded(_ backing: Backing) async throws {
        let (collections, users) = try await Self.users(backing)
        var query = Query<User>().sorted(by: \.age, .descending).limited(to: 3)
        query = query.filter { $0.name == "odd" }
        #expect(try await users.fetch(query).map(\.age) == [23, 21, 19])
        query = query.filter { $0.age < 20 || $0.age == 23 }.filter { !($0.age == 17) }
        #expect(try await users.fetch(query).map(\.age) == [23, 19, 15])
        _ = collections
    }

    /// Before, `like("%" + text + "%")` found everything where the text was "%".
    @Test(arguments: Backing.allCases)
    func textIsTakenAsItIs(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let users = collections.repository("users", of: User.self)
        let names = ["100%", "100 percent", #"a\b"#, #"a\%b"#, "a_b", "axb", "%", "", "e\u{301}%", "Émile"]
        for (number, name) in names.enumerated() {
            try await users.create(User(id: "\(number)", name: name, age: 0, nickname: name))
        }
        func byCodePoint(_ text: String) -> [Unicode.Scalar] { Array(text.unicodeScalars) }
        for part in ["%", "_", #"\"#, #"\%"#, "100", "b", "a_", "%b", "", "\u{301}", "e"] {
            let scalars = byCodePoint(part)
            func expect(
                _ condition: Condition<User>, _ matches: ([Unicode.Scalar]) -> Bool,
                sourceLocation: SourceLocation = #_sourceLocation
            ) async throws {
                let found = try await users.fetch(Query(condition)).map(\.name)
                #expect(
                    found == names.filter { matches(byCodePoint($0)) }, "\(part)", sourceLocation: sourceLocation)
            }
            let properties = User.properties
            try await expect(properties.name.hasPrefix(part)) { $0.starts(with: scalars) }
            try await expect(properties.name.hasSuffix(part)) { $0.reversed().starts(with: scalars.reversed()) }
            try await expect(properties.name.contains(part)) { $0.isEmpty ? scalars.isEmpty : $0.contains(scalars) }
            try await expect(properties.nickname.contains(part)) { $0.isEmpty ? scalars.isEmpty : $0.contains(scalars) }
        }
        _ = collections
    }
}
