import Testing

/// Valid queries compile, invalid ones do not.
@Suite struct QueryCompilationTests {
    private static let models = #"""
        import CRUDClient

        struct User: Codable, Identifiable, Queryable {
            var id: String
            var name: String
            var age: Int
            var nickname: String?
            var tags: [String]
            var address: Address?

            struct Properties {
                let name = Property(\User.name, CodingKeys.name)
                let age = Property(\User.age, CodingKeys.age)
                let nickname = Property(\User.nickname, CodingKeys.nickname)
                let tags = Property(\User.tags, CodingKeys.tags)
                let address = Property(\User.address, CodingKeys.address)
            }
            static let properties = Properties()
        }

        struct Address: Codable, Queryable {
            var city: String

            struct Properties {
                let city = Property(\Address.city, CodingKeys.city)
            }
            static let properties = Properties()
        }

        struct Order: Codable, Queryable {
            var number: Int

            struct Properties {
                let number = Property(\Order.number, CodingKeys.number)
            }
            static let properties = Properties()
        }

        func use(_ users: Repository<User>, _ orders: Repository<Order>) async throws {

        """#

    @Test func validQueriesCompile() throws {
        let errors = try TypeChecker.errors(
            in: Self.models + #"""
                    let adults = Query<User> { $0.age >= 18 && $0.name.like("B%") }
                    _ = try await users.fetch(adults.sorted(by: \.address.city, .descending).limited(to: 10))
                    _ = try await users.fetch { $0.age.in([1, 2]) || !($0.nickname == nil) || $0.tags.contains("x") }
                    _ = try await users.first { $0.address.city == "Paris" && $0.nickname < "b" }
                    _ = try await orders.count { $0.number.between(1, 9) }
                    _ = try await users.fetchVersioned { $0.name.hasPrefix("B") && $0.nickname.contains("x") }
                    _ = try await users.page(adults.filter { $0.name.hasSuffix("b") }, limit: 3)
                    _ = try await users.page(after: nil) { $0.age >= 18 }
                    try await users.modify(id: "ada", expiresIn: .seconds(1), within: .seconds(9)) { $0.age += 1 }
                    try await users.removeAll { $0.age < 18 }
                    try await users.apply(id: "ada", upsert: true) {
                        $0.age += 1
                        $0.tags.add("x")
                        $0.tags.remove(contentsOf: ["y"])
                    }
                }

                @MainActor final class Screen {
                    var (age, users) = (18, [User]())

                    func load(_ repository: Repository<User>) async throws {
                        users = try await repository.fetch { $0.age >= age }
                        _ = try await repository.first { $0.age == age }
                        _ = try await repository.count { $0.age < age }
                        for try await user in repository.records({ $0.age > age }) { users.append(user) }
                        try await repository.modify(id: "x") { user in
                            user.age = age
                            users.append(user)
                        }
                        try await repository.apply(id: "x") { $0.age += age }
                        try await repository.transaction { try $0.upsert(users[0]) }
                        try await repository.persist(users[0])
                        _ = try await repository.fetchVersioned { $0.age >= age }
                        for try await page in repository.changePages() { age += page.changes.count }
                    }

                    func move(_ database: any RecordDatabase) async throws {
                        age = try await database.transaction { transaction in
                            let inside = transaction.collection("users", of: User.self)
                            var user = try await inside.read(id: "x")
                            user.age = age
                            users.append(user)
                            try inside.update(user)
                            return user.age
                        }
                    }
                }
                """#)
        #expect(errors == [])
    }

    /// In a target whose code belongs to the main actor by default.
    @Test(arguments: [true, false])
    func modelsAreNotIsolated(_ isNonisolated: Bool) throws {
        let program = #"""
            import CRUDClient

            nonisolated struct User: Codable, Identifiable, Queryable {
                var id: String
                var name: String
                var address: Address

                struct Address: Codable, Queryable {
                    var city: String

                    struct Properties {
                        let city = Property(\Address.city, CodingKeys.city)
                    }
                    static let properties = Properties()
                }

                struct Properties {
                    let name = Property(\User.name, CodingKeys.name)
                    let address = Property(\User.address, CodingKeys.address)
                }
                static let properties = Properties()
            }

            final class Screen {
                var users: [User] = []
                var text = "A"
                let repository: Repository<User>

                init(_ database: any RecordDatabase) { repository = database.repository("users", of: User.self) }

                func load() async throws {
                    users = try await repository.fetch { $0.name >= text && $0.address.city.hasPrefix(text) }
                    try await repository.modify(id: "x") { user in
                        user.name = text
                        users.append(user)
                    }
                    for try await change in repository.changes() { text += change.id }
                }
            }
            """#
        let text = isNonisolated ? program : program.replacing("nonisolated ", with: "")
        let errors = try TypeChecker.errors(in: text, ["-default-isolation", "MainActor"])
        #expect(errors.isEmpty == isNonisolated, "\(errors)")
    }

    /// Statements, and a part of the compiler's error for each.
    @Test(arguments: [
        // A property that does not exist.
        (#"_ = try await users.fetch { $0.agee >= 18 }"#, "no member 'agee'"),
        (#"_ = try await users.fetch { $0.address.town == "Paris" }"#, "no dynamic member 'town'"),
        (#"_ = try await users.fetch(Query<User>().sorted(by: \.nmae))"#, "no member 'nmae'"),
        (#"_ = Property(\User.agee, Address.properties)"#, "no member 'agee'"),
        // A value of another type.
        (#"_ = try await users.fetch { $0.age >= "18" }"#, "'String'"),
        (#"_ = try await users.fetch { $0.name == 18 }"#, "'Int'"),
        (#"_ = try await users.fetch { $0.nickname.in([1]) }"#, "'Int'"),
        (#"_ = try await users.fetch { $0.age.between(1, "2") }"#, "'String'"),
        (#"_ = try await users.fetch { $0.tags.contains(1) }"#, "'Int'"),
        // A condition that the property's type does not have.
        (#"_ = try await users.fetch { $0.age.like("1%") }"#, "'like'"),
        (#"_ = try await users.fetch { $0.age.contains(1) }"#, "'contains'"),
        (#"_ = try await users.fetch { $0.age == nil }"#, "nil"),
        (#"_ = try await users.fetch { $0.address == Address(city: "Paris") }"#, "'Bool'"),
        (#"_ = try await users.fetch { $0.tags == ["a"] }"#, "'Bool'"),
        // With a hint.
        (#"_ = try await users.fetch { $0.age.hasPrefix("1") }"#, "only a text has a prefix"),
        (#"_ = try await users.fetch { $0.tags.hasSuffix("1") }"#, "only a text has a suffix"),
        (#"_ = try await users.fetch { $0.name.in("a", "b") }"#, "in([first, second])"),
        (#"_ = try await users.fetch { $0.age.in(1, 2, 3) }"#, "in([first, second])"),
        (#"_ = try await users.fetch { $0.name.lowercased() == "a" }"#, "in lower case"),
        // A query for another model.
        (#"_ = try await orders.fetch { $0.age >= 18 }"#, "no member 'age'"),
        (#"_ = try await orders.fetch(Query<User> { $0.age >= 18 })"#, "'Query<User>'"),
        (#"_ = try await orders.count { _ in User.properties.age >= 18 }"#, "'Condition<User>'"),
        (#"_ = try await users.fetch { $0.age >= 18 && Order.properties.number == 1 }"#, "'Condition<Order>'"),
        (#"_ = try await orders.fetch(Query<Order>().sorted(by: \.age))"#, "no member 'age'"),
        // An operation that a property does not have, or with a value of another type.
        (#"try await users.apply(id: "a") { $0.agee += 1 }"#, "no dynamic member 'agee'"),
        (#"try await users.apply(id: "a") { $0.age += "1" }"#, "'PatchedProperty<User, Int>'"),
        (#"try await users.apply(id: "a") { $0.tags.add(1) }"#, "'Int'"),
        (#"try await users.apply(id: "a") { $0.age.add(1) }"#, "'add'"),
        (#"try await users.apply(id: "a") { $0.name.maximum(1) }"#, "'maximum'"),
        // A model without an id.
        (#"try await orders.create(Order(number: 1))"#, "'Identifiable'"),
    ])
    func invalidQueriesDoNotCompile(_ statement: String, _ complaint: String) throws {
        let errors = try TypeChecker.errors(in: Self.models + statement + "\n}\n")
        #expect(errors.contains { $0.contains(complaint) }, "\(errors)")
    }
}
