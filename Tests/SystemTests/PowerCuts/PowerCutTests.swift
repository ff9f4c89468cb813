import CRUDTestSupport
import Testing

/// The power is cut while clients write: what was acknowledged is there afterwards, and every record is whole.
@Suite(.enabled(if: PowerCutDisk.isAvailable, "needs root and loop devices"), .serialized)
struct PowerCutTests {
    private static let adapters = [
        "plugin: sqlite, options: {path: $DISK/main.sqlite}",
        "plugin: filesystem, options: {directory: $DISK/files}",
        "plugin: userdefaults, options: {suite: com.example.test}",
        "plugin: memory, options: {log: $DISK/log}",
    ]

    /// An installation with its records and its state on the disk.
    private func installation(on disk: PowerCutDisk, _ backend: String) throws -> Installation {
        let text = Configuration(backends: "main: {\(backend)}").text
            .replacing("$DIRECTORY/state", with: "$DISK/state").replacing("$DISK", with: disk.path)
        try Files.makeDirectory("\(disk.path)/state", mode: 0o700)
        return try Installation(text: text)
    }

    @Test(arguments: adapters, ["inline", "process"])
    func acknowledgedWritesAreThere(adapter: String, isolation: String) throws {
        let disk = try PowerCutDisk()
        let installation = try installation(on: disk, "isolation: \(isolation), \(adapter)")
        let load = CrashLoad(lanes: 4, seed: 11)
        for acknowledgements in [20, 500, 900] {
            let daemon = try Daemon(on: installation, environment: disk.environment)
            try load.check(on: daemon)
            try load.writeUntilPowerCut(on: daemon, acknowledgements: acknowledgements, of: disk)
            try disk.restorePower()
        }
        let daemon = try Daemon(on: installation, environment: disk.environment)
        try load.check(on: daemon)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    /// The power of the server too.
    @Test func acknowledgedWritesAreThereInPostgreSQL() throws {
        let disk = try PowerCutDisk()
        let server = try disk.makeServer()
        let installation = try installation(
            on: disk, #"plugin: postgresql, options: {connection: "\#(server.connection)"}"#)
        let load = CrashLoad(lanes: 4, seed: 12)
        for acknowledgements in [20, 500] {
            let daemon = try Daemon(on: installation)
            try load.check(on: daemon)
            try load.writeUntilPowerCut(on: daemon, acknowledgements: acknowledgements, of: disk)
            try server.stop()
            try disk.restorePower()
            try server.start(settings: PowerCutDisk.serverSettings)
        }
        let daemon = try Daemon(on: installation)
        try load.check(on: daemon)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }

    @Test(arguments: [IndexedCollection.Place.sqlite, .sqliteInChild])
    func anIndexThatIsBeingBuiltIsCompletedAfterwards(place: IndexedCollection.Place) throws {
        let disk = try PowerCutDisk()
        let collection = try IndexedCollection(place, records: 3000, in: disk.path)
        try collection.addIndexes()
        let before = try collection.awaitProgress(700)
        try disk.cutPower()
        #expect(try collection.connection.isUsable())
        try collection.kill { try disk.restorePower() }
        let after = try collection.awaitProgress()
        #expect(after.indexed >= before.indexed)
        try collection.awaitIndexes()
        try collection.checkIndexes()
        try collection.stop()
    }

    /// The disk does lose what was not synced: a backend that is not to sync loses what it has acknowledged.
    @Test func whatWasNotSyncedIsGone() throws {
        let disk = try PowerCutDisk()
        let installation = try installation(
            on: disk, "plugin: filesystem, options: {directory: $DISK/files, fsync: false}")
        let daemon = try Daemon(on: installation)
        let connection = try daemon.connect()
        for id in 0..<100 { #expect(try connection.create("c", "\(id)", "\(id)").result != nil) }
        try disk.cutPower()
        try daemon.kill()
        try disk.restorePower()
        let files = (try? Files.names(in: "\(disk.path)/files/c")) ?? []
        #expect(files.count { $0.hasPrefix("item_") } < 100)
    }
}
