import CRUDInMemory
import CRUDTestSupport
import Foundation
import Testing

/// Operations on single members, typed and untyped.
@Suite struct FieldOperationTests {
    @Test(arguments: Backing.allCases)
    func changesPropertiesOfAModel(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let users = collections.repository("users", of: User.self)
        try await users.create(
            User(id: "ada", name: "Ada", age: 36, tags: ["a", "b", "a"], address: Address(city: "London")))
        let user = try await users.apply(id: "ada") {
            $0.age += 1
            $0.balance -= 0.1
            $0.tags.add("b")
            $0.tags.add("c")
            $0.scores.add(contentsOf: [1, 2, 1])
        }
        #expect(user.age == 37)
        #expect(user.balance == Decimal(string: "-0.1"))
        #expect(user.tags == ["a", "b", "a", "c"])
        #expect(user.scores == [1, 2])
        #expect(try await users.read(id: "ada") == user)
        let next = try await users.apply(id: "ada") {
            $0.age.minimum(7)
            $0.balance.maximum(2)
            $0.tags.remove("a")
            $0.scores.append(3)
        }
        #expect(next.age == 7 && next.balance == 2 && next.tags == ["b", "c"] && next.scores == [1, 2, 3])

        // Nested properties, stored under a name of their own.
        let nested = try await users.apply(id: "ada") { $0.address.position.latitude += 0.5 }
        #expect(nested.address == Address(city: "London", position: Address.Position(latitude: 0.5)))
        await expectError(.recordNotFound) { try await users.apply(id: "bob") { $0.age += 1 } }
        await expectError(.revisionMismatch) {
            try await users.apply(id: "ada", ifRevision: Revision("none")) { $0.age += 1 }
        }
        #expect(try await users.read(id: "ada") == nested)
    }

    /// What the application sees is the same, whatever is wrong.
    @Test(arguments: Backing.allCases)
    func refusesWhatDoesNotSuit(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let store = collections.store("things")
        let item = try EncodedItem(json: #"{"n":1,"text":"x","list":[1,{"a":1}],"big":1e1000}"#)
        _ = try await store.batch([RecordOperation(.create(item), id: "x")])
        let refused: [(CRUDError.Code, String?, (inout FieldOperations) -> Void)] = [
            (.unsupported, "text", { $0.increment("text", by: 1) }),
            (.unsupported, "list", { $0.increment("list.a", by: 1) }),
            (.unsupported, "big", { $0.minimum("big", 1) }), (.unsupported, "n", { $0.append([1], to: "n") }),
            (.invalidParams, "increment", { $0.increment("n", by: 2) }),
            (.invalidParams, "add", { $0.add([1], to: "n.a") }),
            (.limitExceeded, "query_nodes", { for number in 0..<1000 { $0.increment("m\(number)", by: 1) } }),
            (
                .limitExceeded, "json_depth",
                { $0.increment(Array(repeating: "a", count: 129).joined(separator: "."), by: 1) }
            ),
        ]
        for (code, subject, operation) in refused {
            var operations = FieldOperations()
            if subject != "n" { operations.increment("n", by: 1) }
            operation(&operations)
            let sent = operations
            let error = await expectError(code) { try await store.patch(id: "x", applying: sent, as: Item.self) }
            #expect(error?.details.path ?? error?.details.member ?? error?.details.limit == subject)
            let inBatch: CRUDError?
            do {
                if case .failure(let failure) = try await store.batch([RecordOperation(.apply(sent), id: "x")])[0] {
                    inBatch = failure
                } else {
                    inBatch = nil
                }
            } catch let error as CRUDError {
                inBatch = error
                #expect(error.details.index == 0)
            }
            #expect(inBatch?.code == code)
            await expectError(code) { try await store.transaction([RecordOperation(.apply(sent), id: "x")]) }
        }
        #expect(try await store.read(id: "x", as: Item.self).n == 1)
    }

    private struct Item: Decodable {
        var n: Int
    }

    /// The text of the item, digit for digit, and the upsert of nothing.
    @Test(arguments: Backing.allCases)
    func makesTheSameText(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let store = collections.store("things")
        var operations = FieldOperations()
        operations.increment("a.b", by: 0.1)
        operations.append([[1, 2]], to: "l")
        operations.add([["k": 1.0]], to: "s")
        operations.remove(["x"], from: "r")
        let patch = try EncodedItem(json: #"{"a":{"x":1.50,"x":2.50},"z":1e400}"#)
        var item: EncodedItem?
        for _ in 0..<3 {
            let action = RecordOperation.Action.apply(operations, patch: patch, upsert: true)
            item = try await store.batch([RecordOperation(action, id: "x")])[0].get().item
        }
        #expect(item?.json == #"{"a":{"x":2.50,"b":0.3},"z":1e400,"l":[[1,2],[1,2],[1,2]],"s":[{"k":1}],"r":[]}"#)
        let nothing = try await store.patch(
            id: "y", with: nil, applying: FieldOperations(), ifRevision: nil, upsert: true, expiry: nil,
            as: [String: Int].self)
        #expect(nothing.item == [:])
    }

    @Test(arguments: Backing.allCases)
    func takesPartInTransactionsAndExpiry(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let users = collections.repository("users", of: User.self)
        try await users.create(User(id: "ada", name: "Ada", age: 36), expiresIn: .seconds(1000))
        let before = try await users.readVersioned(id: "ada").expiresAt
        try await users.apply(id: "ada") { $0.age += 1 }
        #expect(before != nil)
        #expect(try await users.readVersioned(id: "ada").expiresAt == before)
        try await users.transaction {
            $0.apply(id: "ada", expiry: .never) { $0.age += 1 }
            $0.apply(id: "ada") { $0.tags.append("x") }
        }
        let user = try await users.readVersioned(id: "ada")
        #expect(user.expiresAt == nil && user.item.age == 38 && user.item.tags == ["x"])
        await expectError(.recordNotFound) {
            try await users.transaction {
                $0.apply(id: "ada") { $0.age += 1 }
                $0.apply(id: "bob") { $0.age += 1 }
            }
        }
        #expect(try await users.read(id: "ada").age == 38)
    }

    /// 64 tasks count together, each in one request for each round: none of them retries anything.
    @Test(arguments: Backing.allCases)
    func manyTasksCountTogether(_ backing: Backing) async throws {
        let collections = try await backing.open()
        let users = collections.repository("users", of: User.self)
        try await users.create(User(id: "ada", name: "Ada", age: 0))
        try await withThrowingTaskGroup { group in
            for task in 0..<64 {
                group.addTask {
                    for _ in 0..<20 {
                        try await users.apply(id: "ada") {
                            $0.age += 1
                            $0.tags.add("\(task)")
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let user = try await users.read(id: "ada")
        #expect(user.age == 64 * 20)
        #expect(user.tags.count == 64)
    }
}
