import CRUDTestSupport
import Glibc
import Testing

/// Whatever happens, whoever follows a collection ends with what is in it.
@Suite struct FeedModelTests {
    /// What remembers changes, in the daemon and in a child.
    enum Adapter: String, CaseIterable {
        case sqlite, memory, postgresql

        private var definition: String {
            switch self {
            case .sqlite: "plugin: sqlite, options: {path: $DIRECTORY/$PLACE.sqlite}"
            case .memory: "plugin: memory"
            case .postgresql: "plugin: postgresql, options: \(PostgreSQLServer.options("$PLACE"))"
            }
        }

        var configuration: Configuration {
            let backends = ["main": "inline", "kid": "process"].map { name, isolation in
                "\(name): {isolation: \(isolation), \(definition.replacing("$PLACE", with: name))}"
            }
            return Configuration(backends: backends.joined(separator: "\n"), loops: 2)
        }
    }

    /// Where the collection is moved to, which gets and loses an index and remembers removals for a shorter time.
    private static let places = [
        "{backend: main, changes: true}", "{backend: kid, format: plist, changes: true}",
        "{backend: main, changes: {retention: 400ms}, indexes: [n]}",
    ]

    @Test(arguments: Adapter.allCases, [1, 2] as [UInt64])
    func everyFollowerEndsWithTheCollection(adapter: Adapter, seed: UInt64) throws {
        func configuration(_ place: Int) -> Configuration {
            var configuration = adapter.configuration
            configuration.collections = "c: \(Self.places[place])"
            return configuration
        }
        let writes = MovePlaces.number("CRUDD_FEED_WRITES", default: 1000)
        let base = UInt64(MovePlaces.number("CRUDD_FEED_SEED", default: 0))
        var random = SeededGenerator(seed: base + seed)
        var daemon = try Daemon(configuration(0))
        var administrator = try daemon.connect()
        var place = 0
        let load = FeedLoad(seed: (base + seed) &* 77)
        try load.connect(to: daemon)
        while load.writes < writes {
            let end = load.writes + 50 + Int(random.next() % 200)
            try load.run { load.writes >= end }
            switch random.next() % 6 {
            case 0:
                administrator = try load.restart(&daemon)
            case 1:
                if let child = try daemon.children.first.flatMap({ pid_t($0) }) { kill(child, SIGKILL) }
            case 2, 3:
                let next = Int(random.next() % UInt64(Self.places.count))
                try daemon.installation.configure(configuration(next))
                guard try administrator.call("daemon.reload", #"{"move":true}"#).result != nil else {
                    // It does not go back to where originals are. A restart must not find that file.
                    try daemon.installation.configure(configuration(place))
                    continue
                }
                place = next
                guard random.next() % 2 == 0 else { continue }
                try load.run { try administrator.moves().isEmpty }
                _ = try administrator.dropOriginals()
            case 4:
                load.disconnect()
                try load.connect(to: daemon)
            default: break
            }
        }
        try load.run { try administrator.moves().allSatisfy { $0["phase"]?.string == "failed" } }
        try load.finish(administrator)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log.suffix(2000))")
    }
}
