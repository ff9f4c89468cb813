import CRUDTestSupport
import Glibc
import Testing

/// Disks that are full or fail, under each adapter.
@Suite struct StorageFaultTests {
    private static func item(_ id: String, bytes: Int = 1000) -> String {
        #"{"id":"\#(id)","padding":"\#(String(repeating: "x", count: bytes))"}"#
    }

    /// What clients were told about writes of records that did not exist before.
    private struct Ledger {
        var acknowledged: Set<String> = []
        var refused: [String: String] = [:]
        /// How long the padding of an item is.
        private var bytes: [String: Int] = [:]

        mutating func create(_ ids: [String], bytes: Int = 1000, on connection: Connection) throws {
            let replies = try connection.pipeline(
                ids.map { ("record.create", Connection.params("c", $0, item: item($0, bytes: bytes))) })
            for (id, reply) in zip(ids, replies) {
                if reply.result != nil { acknowledged.insert(id) }
                // What a retry is told says nothing of the first attempt.
                if let error = reply.error, refused[id] != "outcome_unknown" { refused[id] = error.name }
                self.bytes[id] = bytes
            }
        }

        /// What was acknowledged is there, what was refused is not, and anything else is whole.
        func check(_ connection: Connection) throws {
            for id in acknowledged { #expect(try connection.item("c", id) == written(id), "\(id)") }
            for (id, error) in refused where !acknowledged.contains(id) {
                let found = try connection.item("c", id)
                let isKnown = error == "unavailable" || error == "no_space"
                #expect(found == nil || !isKnown && found == written(id), "\(id): \(error)")
            }
        }

        private func written(_ id: String) -> String? { bytes[id].map { item(id, bytes: $0) } }
    }

    @Test(.enabled(if: geteuid() == 0, "needs root to mount a file system"), arguments: StorageDisk.Adapter.allCases)
    func aFullDiskRefusesWritesAndServesReads(adapter: StorageDisk.Adapter) throws {
        let disk = try StorageDisk(adapter)
        try disk.resize(to: "6m")
        var connection = try disk.start()
        var ledger = Ledger()
        var number = 0
        while ledger.refused.isEmpty {
            try #require(number < 400, "the disk is never full")
            try ledger.create((number..<number + 5).map { "\($0)" }, bytes: 20_000, on: connection)
            number += 5
        }
        try ledger.create(["more", "still more"], bytes: 40_000, on: connection)
        #expect(Set(ledger.refused.values) == ["no_space"])
        #expect(!ledger.acknowledged.isEmpty)
        try ledger.check(connection)
        try disk.resize(to: "16m")
        try ledger.create(["later"], bytes: 20_000, on: connection)
        #expect(ledger.acknowledged.contains("later"), "it continues once there is room")
        try disk.daemon?.kill()
        connection = try disk.start()
        try ledger.check(connection)
    }

    /// A tablespace that is full: the server's own logs have room.
    @Test(.enabled(if: geteuid() == 0, "needs root to mount a file system"))
    func aFullServerRefusesWritesAndServesReads() throws {
        let server = try PostgreSQLServer()
        let disk = try server.mountTablespace("small", size: "8m")
        var daemon = try Daemon(
            Configuration(
                backends: """
                    main: {plugin: postgresql, options: {connection: "\(server.connection)"}}
                    other: {plugin: sqlite, options: {path: $DIRECTORY/other.sqlite}}
                    """, collections: "other: {backend: other}\nc: {backend: main}"))
        var connection = try daemon.connect()
        var ledger = Ledger()
        try ledger.create((0..<100).map { "\($0)" }, on: connection)
        #expect(ledger.refused.isEmpty)
        try disk.setFull(true)
        var number = 100
        while ledger.refused.isEmpty {
            try #require(number < 10_000, "the disk is never full")
            try ledger.create((number..<number + 100).map { "\($0)" }, on: connection)
            number += 100
        }
        #expect(Set(ledger.refused.values) == ["no_space"])
        try ledger.check(connection)
        #expect(try connection.create("other", "a", "1").result != nil)
        for id in (0..<20).map({ "\($0)" }) {
            #expect(try connection.delete("c", id).result != nil, "the server's log has room")
            ledger.acknowledged.remove(id)
        }
        try disk.setFull(false)
        try ledger.create(["later"], on: connection)
        #expect(ledger.acknowledged.contains("later"), "it continues once there is room: \(ledger.refused)")
        try daemon.kill()
        daemon = try daemon.restarted()
        connection = try daemon.connect()
        try ledger.check(connection)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// The disk of a server: what its tables cannot take is refused, and reads go on; it ends itself over a log that it
    /// cannot sync.
    @Test func anErrorOfTheServersDiskLosesNothing() throws {
        let disk = try FaultyDisk()
        let server = try PostgreSQLServer(environment: disk.variables)
        let daemon = try Daemon(
            Configuration(backends: "main: {plugin: postgresql, options: {connection: \"\(server.connection)\"}}"))
        let connection = try daemon.connect()
        var ledger = Ledger()
        try ledger.create((0..<20).map { "\($0)" }, on: connection)
        #expect(ledger.refused.isEmpty)
        try disk.fail("write", "/base/")
        try ledger.create((0..<50).map { "unwritten \($0)" }, on: connection)
        #expect(Set(ledger.refused.values).isSubset(of: ["unavailable", "outcome_unknown"]))
        #expect(disk.log.contains { $0.hasPrefix("write") } && !ledger.refused.isEmpty)
        try ledger.check(connection)
        try disk.heal()
        try ledger.create(["written"], on: connection)
        #expect(ledger.acknowledged.contains("written"), "it continues once the disk works: \(ledger.refused)")

        try disk.fail("sync", "/pg_wal/")
        let acknowledged = ledger.acknowledged
        for round in 0..<3 { try ledger.create((0..<5).map { "unsynced \(round).\($0)" }, on: connection) }
        #expect(ledger.acknowledged == acknowledged)
        #expect(Set(ledger.refused.values).isSubset(of: ["unavailable", "outcome_unknown"]))
        #expect(disk.log.contains { $0.hasPrefix("sync") })
        try server.stop()
        try disk.heal()
        try server.start()
        let deadline = Deadline()
        while !ledger.acknowledged.contains("later") {
            try #require(!deadline.hasPassed, "it does not continue: \(ledger.refused)")
            try ledger.create(["later"], on: connection)
        }
        try ledger.check(connection)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    @Test(arguments: StorageDisk.Adapter.allCases, ["write", "sync"])
    func anErrorOfTheDiskRefusesWritesAndServesReads(adapter: StorageDisk.Adapter, operation: String) throws {
        let disk = try StorageDisk(adapter)
        let connection = try disk.start()
        var ledger = Ledger()
        try ledger.create((0..<20).map { "\($0)" }, on: connection)
        #expect(ledger.refused.isEmpty)
        try disk.fail(operation)
        let acknowledged = ledger.acknowledged
        for round in 0..<3 { try ledger.create((0..<5).map { "failed \(round).\($0)" }, on: connection) }
        #expect(ledger.acknowledged == acknowledged)
        #expect(Set(ledger.refused.values).isSubset(of: ["unavailable", "outcome_unknown"]))
        #expect(disk.log.contains { $0.hasPrefix(operation) })
        for id in acknowledged { #expect(try connection.item("c", id) == Self.item(id), "\(id) while writes fail") }
        try disk.heal()
        try ledger.create(["later"], on: connection)
        #expect(ledger.acknowledged.contains("later"), "it continues once the disk works: \(ledger.refused)")
        try ledger.check(connection)
        try ledger.check(disk.restart())
    }

    /// After a failed sync the kernel forgets what it could not write, and the next sync succeeds.
    @Test(arguments: [
        (StorageDisk.Adapter.sqlite, "/disk/"), (.filesystem, "/disk/"), (.filesystem, "/files/c/"),
        (.userdefaults, "/disk/"), (.userdefaults, "test.plist$"), (.userdefaults, "crudd-copy$"),
        (.memory, "/disk/"), (.memory, "/segment-000001$"),
    ])
    func whatAFailedSyncHasLostIsNotAcknowledged(adapter: StorageDisk.Adapter, files: String) throws {
        let disk = try StorageDisk(adapter)
        let connection = try disk.start()
        var ledger = Ledger()
        try ledger.create((0..<20).map { "\($0)" }, on: connection)
        try disk.fail("sync-once", files)
        for round in 0..<4 {
            try ledger.create((0..<10).map { "\(round).\($0)" }, on: connection)
            // Retried, as a client does.
            try ledger.create(Array(ledger.refused.keys.filter { !ledger.acknowledged.contains($0) }), on: connection)
        }
        #expect(disk.log.contains { $0.hasPrefix("sync-once") })
        #expect(ledger.refused.values.contains { $0 == "unavailable" || $0 == "outcome_unknown" })
        try disk.heal()
        try ledger.create(["later"], on: connection)
        try ledger.check(disk.restart())
    }

    /// Creates records until the disk has been asked for something so often.
    private static func create(
        _ round: String, until operation: String, times: Int, of disk: StorageDisk, _ ledger: inout Ledger,
        on connection: Connection
    ) throws {
        let deadline = Deadline()
        var count = 0
        while disk.log.count(where: { $0.hasPrefix(operation) }) < times {
            try #require(!deadline.hasPassed, "there is no checkpoint")
            try ledger.create((count..<count + 20).map { "\(round) \($0)" }, on: connection)
            count += 20
        }
    }

    /// What a checkpoint has lost is still in the write-ahead log.
    @Test func aCheckpointWhoseSyncFailsLosesNothing() throws {
        let disk = try StorageDisk(.sqlite)
        var connection = try disk.start()
        var ledger = Ledger()
        try ledger.create((0..<20).map { "\($0)" }, on: connection)
        try disk.fail("sync-once", "main.sqlite$")
        try Self.create("lost", until: "sync-once", times: 1, of: disk, &ledger, on: connection)
        #expect(ledger.refused.isEmpty)
        try disk.heal()
        try ledger.check(connection)
        // The log is written from its start again after a checkpoint that copies everything anew: one that is synced
        // in the background, and then to its end.
        try disk.fail("trace", "main.sqlite$")
        try Self.create("copied", until: "synced", times: 3, of: disk, &ledger, on: connection)
        #expect(ledger.refused.isEmpty)
        try disk.heal()
        try ledger.check(connection)
        connection = try disk.restart()
        try ledger.check(connection)
        #expect(try disk.daemon?.stop() == .exited(0))
        try ledger.check(disk.start())
    }

    /// Readers find it there at once, though the writer waits meanwhile and has not heard of it.
    @Test func readersAreNotShownWhatAFailedSyncHasLost() throws {
        let disk = try StorageDisk(.sqlite, cache: "0B")
        let connection = try disk.start()
        var ledger = Ledger()
        try ledger.create((0..<20).map { "\($0)" }, on: connection)
        try disk.fail("stall", "main.sqlite$")
        let writing = try #require(disk.daemon).connect()
        var count = 0
        // A writer whose log is full waits for the sync.
        func writeMore() throws {
            if count > 0, try !writing.hasSomethingToRead() {
                usleep(1000)
                return
            }
            if count > 0 { _ = try writing.receive() }
            let operations = (count..<count + 100).map { number in
                #"{"op":"upsert","collection":"c","id":"more \#(number)","item":\#(Self.item("\(number)"))}"#
            }
            count += 100
            try writing.sendFrame(
                Connection.request("record.batch", #"{"operations":[\#(operations.joined(separator: ","))]}"#, id: "1"))
        }
        let deadline = Deadline()
        while !disk.log.contains(where: { $0.hasPrefix("stall") }) {
            try #require(!deadline.hasPassed, "the log is not copied")
            try writeMore()
        }
        let lock = try SQLiteLock(of: "\(disk.path)/main.sqlite")
        try disk.fail("sync-once", "main.sqlite$")
        while !disk.log.contains(where: { $0.hasPrefix("sync-once") }) {
            try #require(!deadline.hasPassed, "no sync fails")
            try writeMore()
        }
        while try (0..<20).contains(where: { try connection.read("c", "\($0)").result == nil }) {
            try #require(!deadline.hasPassed, "what was lost is shown until the writer continues")
            try writeMore()
        }
        try lock.end()
        try disk.heal()
        try ledger.check(connection)
        try ledger.check(disk.restart())
    }

    /// The first sync of the database file is one beside the writer, the later ones end a checkpoint or are like it.
    @Test(arguments: 1...3, [false, true])
    func aKillDuringACheckpointLosesNothing(sync: Int, isAfter: Bool) throws {
        let disk = try StorageDisk(.sqlite)
        let connection = try disk.start()
        var ledger = Ledger()
        try ledger.create((0..<20).map { "\($0)" }, on: connection)
        try disk.kill(atCall: sync, of: "main.sqlite$", isAfter: isAfter)
        #expect(throws: (any Error).self) {
            try Self.create("killed", until: "there is no such line", times: 1, of: disk, &ledger, on: connection)
        }
        #expect(disk.log.count { $0.hasPrefix("sync") } == 1, "it was killed there")
        try disk.heal()
        try ledger.check(disk.restart())
    }

    /// A directory that was not synced is not trusted again, since nothing in it can be written anew.
    @Test(arguments: [(StorageDisk.Adapter.filesystem, "/files/c$"), (.userdefaults, "/.config$")])
    func aDirectoryThatWasNotSyncedTakesNoWrites(adapter: StorageDisk.Adapter, directory: String) throws {
        let disk = try StorageDisk(adapter)
        let connection = try disk.start()
        #expect(try connection.create("c", "a", "1").result != nil)
        try disk.fail("sync", directory)
        #expect(try connection.create("c", "b", "1").error?.name == "outcome_unknown")
        try disk.heal()
        #expect(try connection.create("c", "d", "1").error?.name == "unavailable")
        #expect(try connection.delete("c", "a").error?.name == "unavailable")
        #expect(try connection.item("c", "a") == "1")
        #expect(try disk.restart().create("c", "d", "1").result != nil)
    }

    @Test(arguments: StorageDisk.Adapter.allCases)
    func aDiskThatCannotBeReadCostsTheReadsAlone(adapter: StorageDisk.Adapter) throws {
        let disk = try StorageDisk(adapter)
        var ledger = Ledger()
        try ledger.create((0..<300).map { "\($0)" }, on: disk.start())
        // Nothing is in memory but what the start reads.
        let connection = try disk.restart()
        #expect(try connection.item("c", "0") == Self.item("0"))
        try disk.fail("read")
        let errors = try (1..<300).compactMap { try connection.read("c", "\($0)").error?.name }
        #expect(Set(errors).isSubset(of: ["unavailable", "corrupt"]))
        // A suite is in memory as a whole, and so are the records of `memory`.
        #expect(errors.isEmpty == [.userdefaults, .memory].contains(adapter))
        #expect(try connection.call("daemon.ping").result != nil)
        try disk.heal()
        try ledger.check(connection)
    }

    @Test func oneFileThatCannotBeReadIsCorruptByItself() throws {
        let disk = try StorageDisk(.filesystem)
        let connection = try disk.start()
        for id in ["a", "bad", "c"] { #expect(try connection.create("c", id, "1").result != nil) }
        try disk.fail("read", "item_bad.json")
        #expect(try connection.read("c", "bad").error?.name == "corrupt")
        let page = try connection.call("record.query", #"{"collection":"c"}"#).result
        #expect(page?["records"]?.elements?.map { $0["id"]?.string } == ["a", "c"])
        #expect(page?["corrupt"]?.text == #"["bad"]"#)
        #expect(disk.daemon?.log.contains("cannot read \(disk.path)/files/c/item_bad.json") == true)
        #expect(try connection.upsert("c", "bad", "2").result?["created"]?.boolean == false)
        #expect(try connection.delete("c", "bad").result != nil)
    }

    /// A directory may have been made just before a crash, so that finding it says nothing of the disk.
    @Test(arguments: [
        (StorageDisk.Adapter.sqlite, ["/disk"]), (.filesystem, ["/disk", "/disk/files", "/disk/files/c"]),
        (.userdefaults, ["/disk", "/disk/.config"]), (.memory, ["/disk"]),
    ])
    func directoriesAreSyncedWhetherTheyAreMadeOrFound(adapter: StorageDisk.Adapter, directories: [String]) throws {
        let disk = try StorageDisk(adapter)
        try disk.fail("trace")
        for id in ["first", "second"] {
            let known = disk.log.count
            let connection = try id == "first" ? disk.start() : disk.restart()
            #expect(try connection.create("c", id, "1").result != nil)
            let synced = disk.log.dropFirst(known)
            for directory in directories {
                let name = directory.dropFirst("/disk".count)
                #expect(synced.contains { $0 == "synced \(disk.path)\(name)" }, "\(directory), \(id) time: \(synced)")
            }
        }
    }
}
