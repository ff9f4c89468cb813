import CRUDTestSupport
import Glibc
import Testing

/// A full disk is no dead end: what is deleted makes room for what is created then, without a restart.
@Suite(.enabled(if: geteuid() == 0, "needs root to mount a file system")) struct FullDiskTests {
    /// How records go.
    enum Way: CaseIterable { case delete, deleteMatching, drop, expiry }

    /// A daemon whose only backend lies on a small disk.
    private final class FullDisk {
        let disk: StorageDisk
        private let clock: SetClock
        private var connection: Connection
        /// What was acknowledged, by collection.
        private var stored: [String: Set<String>] = [:]
        private var count = 0
        /// Single ones whose deletion was acknowledged.
        private var deleted: [(collection: String, id: String)] = []
        /// Whether nothing else is there.
        private var isComplete = true
        /// By how much the clock was set forward.
        private var hours = 0

        init(_ adapter: StorageDisk.Adapter, isolation: String, holdsState: Bool = false) throws {
            clock = try SetClock()
            disk = try StorageDisk(
                adapter, isolation: isolation, variables: clock.environment, holdsState: holdsState)
            try disk.resize(to: adapter == .sqlite ? "12m" : adapter == .memory ? "6m" : "2m")
            connection = try disk.start()
        }

        /// Seconds until their records expire, by collection.
        private static let lifetimes = ["first": "3600", "second": "129600"]

        private static func item(_ id: String, bytes: Int) -> String {
            #"{"id":"\#(id)","padding":"\#(String(repeating: "x", count: bytes))"}"#
        }

        /// Creates so many records with one frame each, and returns how many were refused.
        func create(_ number: Int, in collection: String, bytes: Int = 20_000) throws -> Int {
            let ids = (count..<count + number).map { "\($0) \(bytes)" }
            count += number
            let replies = try connection.pipeline(
                ids.map {
                    let params = Connection.params(
                        collection, $0, item: Self.item($0, bytes: bytes),
                        more: Self.lifetimes[collection].map { ["ttl": $0] } ?? [:])
                    return ("record.create", params)
                })
            for (id, reply) in zip(ids, replies) {
                if reply.result != nil { stored[collection, default: []].insert(id) }
                if let error = reply.error { #expect(error.name == "no_space", "\(reply)") }
            }
            return replies.count { $0.error != nil }
        }

        /// Creates so many records in the room that others leave.
        func createAgain(_ number: Int, after way: Way) throws {
            var missing = try create(number, in: "c")
            let deadline = Deadline()
            // What has expired is removed a little later: a write has the clock noticed.
            while missing > 0, way == .expiry, !deadline.hasPassed { missing = try create(missing, in: "c") }
            #expect(missing == 0, "\(disk.daemon?.log ?? "")")
        }

        /// Leaves no room for a record of any size, nor for anything else.
        func fill() throws {
            let deadline = Deadline(.seconds(120))
            for bytes in [20_000, 2000, 100] {
                while try create(5, in: "c", bytes: bytes) < 5 {
                    try #require(!deadline.hasPassed, "the disk is never full")
                }
                try disk.takeRest()
            }
        }

        /// Makes all records of a collection go.
        func free(_ way: Way, _ collection: String) throws {
            let ids = stored[collection] ?? []
            stored[collection] = nil
            switch way {
            case .delete:
                for id in ids {
                    let reply = try connection.delete(collection, id)
                    #expect(reply.result != nil, "\(reply)")
                }
            case .deleteMatching:
                let reply = try connection.call("record.deleteMatching", #"{"collection":"\#(collection)","all":true}"#)
                #expect(reply.result?["deleted"]?.integer == ids.count, "\(reply)")
            case .drop:
                let reply = try connection.call("collection.drop", #"{"collection":"\#(collection)"}"#)
                #expect(reply.result?["dropped"]?.boolean == true, "\(reply)")
            case .expiry:
                hours += 24
                try clock.set(forward: hours * 3600)
            }
        }

        /// What the backend has to say.
        func notice() throws -> String? {
            let notice = try connection.call("backend.list").result?["backends"]?.elements?.first?["notice"]?.string
            let status = try connection.call("daemon.status").result?["notices"]?["main"]?.string
            // The plugin may say it between the two calls.
            return notice == status ? notice : try self.notice()
        }

        /// Deletes records, with one frame each, and kills the daemon when so many replies have come.
        func deleteUntilKilled(_ number: Int, in collection: String, killedAfter replies: Int) throws {
            let ids = Array((stored[collection] ?? []).prefix(number))
            for id in ids {
                try connection.sendFrame(
                    Connection.request("record.delete", Connection.params(collection, id), id: "1"))
            }
            for id in ids.prefix(replies) {
                let reply = try connection.receive()
                #expect(reply.result != nil, "\(reply)")
                stored[collection]?.remove(id)
                deleted.append((collection, id))
            }
            try disk.daemon?.kill()
            // Nobody knows of the others; nothing is expected of them.
            for id in ids { stored[collection]?.remove(id) }
            isComplete = false
        }

        /// Has another program use the disk up while the daemon is stopped.
        func restartWithoutRoom() throws {
            _ = try disk.daemon?.stop()
            try disk.takeRest()
            connection = try disk.start()
        }

        func restart() throws { connection = try disk.restart() }

        /// Everything that was acknowledged is there, and nothing else.
        func check() throws {
            for (collection, id) in deleted { #expect(try connection.exists(collection, id) == false, "\(id)") }
            for (collection, ids) in stored {
                for id in ids {
                    let bytes = try #require(id.split(separator: " ").last.flatMap { Int($0) })
                    #expect(try connection.item(collection, id) == Self.item(id, bytes: bytes), "\(collection) \(id)")
                }
                let count = try connection.call("record.count", #"{"collection":"\#(collection)"}"#).result?["count"]
                #expect(!isComplete || count?.integer == ids.count)
            }
        }
    }

    @Test(
        arguments: [
            (StorageDisk.Adapter.sqlite, "inline"), (.sqlite, "process"), (.filesystem, "inline"),
            (.userdefaults, "inline"), (.memory, "inline"), (.memory, "process"),
        ], Way.allCases)
    func whatIsDeletedMakesRoom(place: (adapter: StorageDisk.Adapter, isolation: String), way: Way) throws {
        let full = try FullDisk(place.adapter, isolation: place.isolation)
        for collection in ["first", "second"] { #expect(try full.create(20, in: collection) == 0) }
        try full.fill()
        try full.check()
        try full.free(way, "first")
        try full.createAgain(10, after: way)
        try full.fill()
        try full.restart()
        try full.check()
        try full.disk.takeRest()
        try full.free(way, "second")
        try full.createAgain(10, after: way)
        try full.check()
        try full.restart()
        try full.check()
    }

    /// What the daemon notes of collections lies on the same disk by default. A drop needs no room there.
    @Test(arguments: StorageDisk.Adapter.allCases)
    func collectionsAreDroppedWhereTheStateIs(adapter: StorageDisk.Adapter) throws {
        let full = try FullDisk(adapter, isolation: "inline", holdsState: true)
        let collections = (0..<100).map { "small \($0)" }
        for collection in collections { #expect(try full.create(1, in: collection, bytes: 100) == 0) }
        try full.fill()
        for collection in collections {
            try full.free(.drop, collection)
            // Some notes would find room in a block that another one has taken.
            try full.disk.takeRest()
        }
        try full.check()
        try full.restart()
        try full.check()
    }

    /// Of SQLite alone: the log and `backend.list` say so as long as the reserve is in use.
    @Test(arguments: ["inline", "process"]) func theReserveIsMadeAgain(isolation: String) throws {
        let full = try FullDisk(.sqlite, isolation: isolation)
        let reserve = "\(full.disk.path)/main.sqlite-reserve"
        // A daemon becomes ready although its storage takes long to open: what is stored has waited for that.
        #expect(try full.create(20, in: "first") == 0)
        #expect(Files.status(reserve)?.st_blocks == 4096)
        try full.fill()
        #expect(try full.notice() == nil, "what is refused does not use it")
        // Even a start needs some room.
        try full.restartWithoutRoom()
        try full.check()
        #expect(try full.notice()?.contains("main.sqlite-reserve has been removed") == true)
        try full.free(.deleteMatching, "first")
        #expect(!Files.exists(reserve))
        #expect(try full.create(10, in: "c") == 0)
        #expect(try full.create(20, in: "c", bytes: 100_000) > 0, "what is stored does not use it up")
        full.disk.freeRest()
        try full.disk.resize(to: "24m")
        let deadline = Deadline()
        while try full.notice() != nil { try #require(!deadline.hasPassed, "the reserve is not made again") }
        #expect(Files.status(reserve)?.st_blocks == 4096)
        #expect(try full.create(20, in: "c", bytes: 100_000) == 0)
        let lines = full.disk.daemon?.log.split(separator: "\n").filter { $0.contains("main.sqlite-reserve") } ?? []
        #expect(lines.count == 2, "\(lines)")
        try full.check()
    }

    /// Whatever is deleted and created on a full disk when the daemon is killed, what was acknowledged counts.
    @Test(arguments: StorageDisk.Adapter.allCases) func nothingIsLostWhenItIsKilled(adapter: StorageDisk.Adapter) throws
    {
        let full = try FullDisk(adapter, isolation: "inline")
        #expect(try full.create(30, in: "first") == 0)
        try full.fill()
        for round in 0..<3 {
            try full.deleteUntilKilled(10, in: "first", killedAfter: 3 + round)
            try full.restart()
            try full.check()
            try full.fill()
        }
    }

    /// An error of the disk is not a full one: nothing is removed, and it continues afterwards.
    @Test(arguments: StorageDisk.Adapter.allCases) func deletionsFailWithTheDisk(adapter: StorageDisk.Adapter) throws {
        let disk = try StorageDisk(adapter)
        let connection = try disk.start()
        let ids = (0..<20).map { "\($0)" }
        for id in ids { #expect(try connection.create("c", id, "1").result != nil) }
        // A file is removed without a byte being written.
        try disk.fail(adapter == .filesystem ? "sync" : "write")
        let failed = try connection.delete("c", "0").error?.name
        #expect(failed == "unavailable" || failed == "outcome_unknown")
        try disk.heal()
        let later = adapter == .filesystem ? try disk.restart() : connection
        for id in ids.dropFirst() { #expect(try later.delete("c", id).result != nil) }
        for id in ids { #expect(try later.create("c", "new \(id)", "2").result != nil) }
        let restarted = try disk.restart()
        for id in ids { #expect(try restarted.item("c", "new \(id)") == "2") }
        for id in ids.dropFirst() { #expect(try restarted.item("c", id) == nil) }
    }
}
