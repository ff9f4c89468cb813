import CRUDClient
import CRUDTestSupport
import Testing

/// The client and the real daemon.
@Suite struct DaemonTests {
    private struct Client: Codable, Equatable {
        var name: String
    }

    @Test func keepsRecords() async throws {
        let daemon = try Daemon()
        let repository: any CRUDRepository = try await CRUDClient.connect(path: daemon.socketPath)
            .repository("Clients Database")
        let first = try await repository.create(id: "client", item: Client(name: "Chill Client"))
        var record = try await repository.readVersioned(id: "client", as: Client.self)
        #expect(record.item == Client(name: "Chill Client"))
        #expect(record.revision == first)

        record.item.name = "Busy Client"
        try await repository.update(id: "client", item: record.item, ifRevision: record.revision)
        let mismatch = await #expect(throws: CRUDError.self) {
            try await repository.delete(id: "client", ifRevision: first)
        }
        #expect(mismatch?.code == .revisionMismatch)
        #expect(
            mismatch?.details.revision
                == (try await repository.readVersioned(id: "client", as: Client.self)).revision.text)

        try await repository.delete(id: "client")
        #expect(try await repository.exists(id: "client") == false)
        let gone = await #expect(throws: CRUDError.self) { try await repository.read(id: "client", as: Client.self) }
        #expect(gone?.code == .recordNotFound)

        try await repository.upsert(id: "clientArray", item: [record.item])
        try await repository.upsert(id: "number", item: 17)
        #expect(try await repository.read(id: "clientArray") == [Client(name: "Busy Client")])
        #expect(try await repository.read(ids: ["number", "none", "number"], as: Int.self) == [17])
        let exists = await #expect(throws: CRUDError.self) { try await repository.create(id: "number", item: 18) }
        #expect(exists?.code == .recordExists)
    }

    @Test func tellsOfItself() async throws {
        let daemon = try Daemon()
        let client = try await CRUDClient.connect(path: daemon.socketPath)
        try await client.ping()
        try await client.repository("c").create(id: "x", item: true)

        let status = try JSON(parsing: await client.call("daemon.status"))
        #expect(status["version"]?.string == CRUDVersion.current)
        #expect(status["pid"]?.integer == Int(daemon.process.pid))
        #expect(status["sessions"]?.integer == 1)
        #expect(try await client.collections().map(\.name) == ["c"])
        let collection = try await client.collection("c")
        #expect(collection.backend == "main")
        #expect(collection.format == "json")
        #expect(collection.count == 1)
        #expect(collection.capabilities?.isEmpty == false)
        #expect(try await client.call("rpc.discover").contains(#""openrpc""#))
    }

    @Test func outlivesADaemonThatIsKilled() async throws {
        let daemon = try Daemon()
        let client = try await CRUDClient.connect(path: daemon.socketPath)
        let repository = client.repository("c")
        try await repository.create(id: "x", item: 1)
        try daemon.kill()
        // It waits, and is sent to the next daemon.
        async let item = repository.read(id: "x", as: Int.self)
        let next = try daemon.restarted()
        #expect(try await item == 1)
        try await repository.update(id: "x", item: 2)
        #expect(try next.stop() == .exited(0))
    }

    /// Where a reload lowers `frame_bytes`, only what is longer fails, and it is known not to have been applied.
    @Test func aLoweredLimitFailsOnlyWhatIsTooLong() async throws {
        let daemon = try Daemon(Configuration(limits: "frame_bytes: 8MiB"))
        let client = try await CRUDClient.connect(path: daemon.socketPath)
        let repository = client.repository("c")
        try await repository.create(id: "x", item: 1)
        try daemon.installation.configure(Configuration(limits: "frame_bytes: 256KiB\nitem_bytes: 128KiB"))
        _ = try await CRUDClient.connect(path: daemon.socketPath).call("daemon.reload")
        let long = String(repeating: "x", count: 1 << 20)
        try await withThrowingTaskGroup { group in
            for number in 0..<100 {
                group.addTask {
                    guard number != 50 else {
                        let error = await #expect(throws: CRUDError.self) {
                            try await repository.create(id: "long", item: long)
                        }
                        #expect(error?.code == .limitExceeded && error?.details.limit == "frame_bytes")
                        return
                    }
                    try await repository.create(id: "\(number)", item: number)
                    #expect(try await repository.read(id: "x", as: Int.self) == 1)
                }
            }
            try await group.waitForAll()
        }
        #expect(try await client.collection("c").count == 100)
    }

    @Test func manyTasksShareOneConnection() async throws {
        let daemon = try Daemon()
        let client = try await CRUDClient.connect(path: daemon.socketPath)
        let repository = client.repository("c")
        try await withThrowingTaskGroup { group in
            for task in 0..<64 {
                group.addTask {
                    for index in 0..<50 {
                        let id = "\(task)-\(index)"
                        try await repository.create(id: id, item: id)
                        // A read sees the writes before it.
                        let item: String = try await repository.read(id: id)
                        #expect(item == id)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try JSON(parsing: await client.call("daemon.status"))["sessions"]?.integer == 1)
        #expect(try await client.collection("c").count == 3200)
    }
}
