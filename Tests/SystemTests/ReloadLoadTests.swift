import CRUDTestSupport
import Glibc
import Testing

/// Reloads while several connections pipeline writes and reads.
@Suite struct ReloadLoadTests {
    @Test(arguments: [(1, 100), (4, 50)])
    func reloadsUnderLoadAreNotNoticed(loops: Int, count: Int) throws {
        let installation = try Installation(Self.configuration(0, loops: loops))
        for plugin in ["filesystem", "memory"] {
            try Files.copy(
                BuildProducts.path(of: "lib\(plugin).so"), to: "\(installation.pluginDirectory)/\(plugin).so",
                mode: 0o755)
        }
        let daemon = try Daemon(on: installation)
        let administrator = try daemon.connect()
        var lanes = try (0..<6).map { try Lane(connection: daemon.connect(), number: $0) }
        for lane in lanes.indices { try lanes[lane].fill() }
        for lane in lanes.indices { try lanes[lane].drain() }
        let (files, threads, children) = (
            try Self.openFiles(of: daemon), try daemon.threadCount, try daemon.children.count
        )
        let sockets = try Self.socketCount(of: daemon)
        #expect(children > 0)

        let deadline = Deadline(.seconds(900))
        var reloads = 0
        try Self.requestReload(of: installation, 1, loops: loops, administrator)
        while reloads < count {
            try #require(!deadline.hasPassed, "only \(reloads) reloads")
            for lane in lanes.indices { try lanes[lane].fill() }
            let interests = try ([administrator] + lanes.map(\.connection)).map { (try $0.pollDescriptor, POLLIN) }
            let events = try Descriptor.wait(for: interests, until: deadline)
            for lane in lanes.indices where events[lane + 1] != 0 { try lanes[lane].takeIn() }
            guard events[0] != 0 else { continue }
            let reply = try administrator.receive()
            #expect(reply.result?["changes"]?.elements?.isEmpty == false, "\(reply)")
            reloads += 1
            // What is not read holds up whoever notifies.
            _ = daemon.notifications.received
            if reloads < count { try Self.requestReload(of: installation, reloads + 1, loops: loops, administrator) }
        }
        for lane in lanes.indices { try lanes[lane].drain() }
        #expect(lanes.allSatisfy { $0.replies > 10 * count }, "\(lanes.map(\.replies))")

        let filesAfterwards = try Self.openFiles(of: daemon)
        #expect(Set(filesAfterwards) == Set(files))
        // A backend makes a loop's own reader when the loop first reads by itself.
        #expect(filesAfterwards.count <= files.count, "\(filesAfterwards)")
        // An event loop takes a channel to a child when it first has need of it: two each, of at most four loops.
        #expect(try abs(Self.socketCount(of: daemon) - sockets) <= 8)
        #expect(try daemon.threadCount == threads)
        #expect(try daemon.children.count == children)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// What a read has found in one format is decoded as that format, though the collection has another by then.
    @Test func readsInFlightKeepTheirFormat() throws {
        func configuration(_ format: String) -> Configuration {
            Configuration(
                backends: "main: {plugin: filesystem, options: {directory: $DIRECTORY/files, fsync: false}}",
                collections: "c: {backend: main, format: \(format)}")
        }
        let installation = try Installation(configuration("json"))
        try Files.copy(
            BuildProducts.path(of: "libfilesystem.so"), to: "\(installation.pluginDirectory)/filesystem.so", mode: 0o755
        )
        let daemon = try Daemon(on: installation)
        let (administrator, reader) = (try daemon.connect(), try daemon.connect())
        #expect(try reader.create("c", "a", "[1]").result != nil)
        let reads = Array(repeating: ("record.read", Connection.params("c", "a")), count: 100)
        for round in 0..<30 {
            try installation.configure(configuration(round.isMultiple(of: 2) ? "xml" : "json"))
            try administrator.sendFrame(Connection.request("daemon.reload", #"{"force":true}"#, id: "1"))
            for reply in try reader.pipeline(reads) {
                // In the other format there is no such record.
                #expect(reply.result?["item"]?.text == "[1]" || reply.error?.name == "record_not_found", "\(reply)")
            }
            #expect(try administrator.receive().result != nil)
            _ = daemon.notifications.received
        }
        #expect(try reader.item("c", "a") == "[1]")
    }

    /// Without sockets, and without SQLite's logs: each of its connections opens one when it first reads.
    private static func openFiles(of daemon: Daemon) throws -> [String] {
        try daemon.process.openFiles.filter { !$0.hasSuffix("-wal") && $0 != "socket:" }.sorted()
    }

    private static func socketCount(of daemon: Daemon) throws -> Int {
        try daemon.process.openFiles.count { $0 == "socket:" }
    }

    private static func requestReload(
        of installation: Installation, _ round: Int, loops: Int, _ connection: Connection
    ) throws {
        try installation.configure(configuration(round, loops: loops))
        try connection.sendFrame(Connection.request("daemon.reload", id: "\(round)"))
    }

    /// Two backends that change with every round, one that does not, one that comes and goes, and one in a child
    /// process that changes now and then.
    private static func configuration(_ round: Int, loops: Int) -> Configuration {
        let isEven = round.isMultiple(of: 2)
        let synchronous = isEven ? "off" : "normal"
        return Configuration(
            backends: """
                steady: {plugin: sqlite, options: {path: $DIRECTORY/steady.sqlite, synchronous: off}}
                rows: {plugin: sqlite, options: {path: $DIRECTORY/rows.sqlite, synchronous: \(synchronous)}}
                files: {plugin: filesystem, options: {directory: $DIRECTORY/files\(isEven ? ", fsync: false" : "")}}
                child:
                  plugin: sqlite
                  isolation: process
                  options: {path: $DIRECTORY/child.sqlite, synchronous: \(round / 5 % 2 == 0 ? "off" : "normal")}
                \(isEven ? "extra: {plugin: memory}" : "")
                """,
            collections: """
                rows: {backend: rows\(round.isMultiple(of: 3) ? ", indexes: [number]" : "")}
                files: {backend: files}
                child: {backend: child}
                "*": {backend: steady}
                """, limits: "inflight_per_session: \(isEven ? 100 : 256)", loops: loops)
    }

    /// One connection that writes a growing number to a record of its own in each collection and reads it back, many
    /// requests at a time: each read must find the write before it.
    private struct Lane {
        let connection: Connection
        let number: Int
        private(set) var replies = 0
        private var sent = 0
        private var expected: [Int: Int] = [:]

        init(connection: Connection, number: Int) {
            self.connection = connection
            self.number = number
        }

        private static let collections = ["rows", "files", "steady", "child"]
        private static let depth = 64

        mutating func fill() throws {
            var bytes: [UInt8] = []
            while expected.count < Self.depth {
                let collection = Self.collections[sent / 2 % Self.collections.count]
                if sent.isMultiple(of: 2) {
                    let params = Connection.params(collection, "\(number)", item: "\(sent)")
                    bytes += Connection.frame(Connection.request("record.upsert", params, id: "\(sent)"))
                } else {
                    let params = Connection.params(collection, "\(number)")
                    bytes += Connection.frame(Connection.request("record.read", params, id: "\(sent)"))
                }
                expected[sent] = sent - 1
                sent += 1
            }
            try connection.send(bytes)
        }

        mutating func takeIn() throws {
            try connection.takeIn()
            while let frame = try connection.bufferedFrame() {
                let reply = try Reply(JSON(parsing: frame))
                let number = try #require(reply.id.integer)
                let known = expected.removeValue(forKey: number)
                let written = try #require(known, "a reply to nothing: \(reply)")
                try #require(reply.result != nil, "\(reply)")
                if !number.isMultiple(of: 2) { try #require(reply.result?["item"]?.integer == written, "\(reply)") }
                replies += 1
            }
        }

        mutating func drain() throws {
            let deadline = Deadline()
            while !expected.isEmpty {
                try #require(!deadline.hasPassed, "\(expected.count) requests have no reply")
                _ = try Descriptor.wait(for: [(connection.pollDescriptor, POLLIN)], until: deadline)
                try takeIn()
            }
        }
    }
}
