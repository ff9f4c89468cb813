import CRUDClient
import CRUDTestSupport
import Synchronization
import Testing

/// Many tasks that follow changes through one client of the real daemon.
@Suite(.timeLimit(.minutes(10))) struct ManyFollowersTests {
    private static func daemon(_ limits: String? = nil) throws -> Daemon {
        try Daemon(Configuration(collections: "\"*\": {backend: main, changes: true}", limits: limits))
    }

    /// Waits until so many requests wait for changes.
    private static func awaitFollowers(_ count: Int, _ observer: CRUDClient) async throws {
        let deadline = Deadline()
        while true {
            let text = try JSON(parsing: await observer.call("daemon.metrics"))["text"]?.string
            if text?.contains("\ncrudd_changes_followers \(count)\n") == true { return }
            try #require(!deadline.hasPassed)
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Tasks that follow, and do not end by themselves.
    private static func followers(_ count: Int, of things: RemoteRepository) -> [Task<Void, any Error>] {
        (0..<count).map { _ in
            Task { for try await _ in things.changes(after: .now) {} }
        }
    }

    /// Before, those that were cancelled held up everything for a quarter of a minute, and all that came after them.
    @Test func thoseThatAreCancelledLeaveNothingBehind() async throws {
        let daemon = try Self.daemon()
        let client = try await CRUDClient.connect(path: daemon.socketPath)
        let things = client.repository("things")
        try await things.create(id: "a", item: 1)
        // One of several rounds shows it, however busy the machine is.
        var shortest = Duration.seconds(3600)
        for _ in 0..<4 where shortest > .seconds(10) {
            let start = ContinuousClock.now
            let tasks = Self.followers(260, of: things)
            // Through the same client.
            try await Self.awaitFollowers(260, client)
            for task in tasks { task.cancel() }
            for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
            #expect(try await things.count(.all) == 1)
            try await Self.awaitFollowers(0, client)
            shortest = min(shortest, start.duration(to: .now))
        }
        #expect(shortest <= .seconds(10))
    }

    private final class Progress: Sendable {
        let isOver = Atomic(false)
        let count = Atomic(0)
    }

    @Test func thousandsComeAndGoBesideRequests() async throws {
        let daemon = try Self.daemon()
        let client = try await CRUDClient.connect(path: daemon.socketPath)
        let things = client.repository("things")
        try await things.create(id: "a", item: 0)
        let progress = Progress()
        try await withThrowingTaskGroup { group in
            for number in 0..<10 {
                group.addTask {
                    while !progress.isOver.load(ordering: .relaxed) {
                        try await things.upsert(id: "\(number)", item: 1)
                        #expect(try await things.read(id: "\(number)", as: Int.self) == 1)
                        progress.count.add(1, ordering: .relaxed)
                        try await Task.sleep(for: .milliseconds(2))
                    }
                }
            }
            for _ in 0..<10 {
                let tasks = Self.followers(500, of: client.repository("others"))
                try await Self.awaitFollowers(500, client)
                for task in tasks { task.cancel() }
                for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
            }
            progress.isOver.store(true, ordering: .relaxed)
            try await group.waitForAll()
        }
        #expect(progress.count.load(ordering: .relaxed) > 100)
        try await Self.awaitFollowers(0, client)
        #expect(try await things.count(.all) == 11)
    }

    /// Before, each of them occupied the daemon.
    @Test func thoseAtTheSamePlaceShareOneRequest() async throws {
        let daemon = try Self.daemon()
        let client = try await CRUDClient.connect(path: daemon.socketPath)
        let things = client.repository("things")
        let page = try await things.changes(ChangeQuery(after: .now))
        func follow() -> Task<[String], any Error> {
            Task {
                var ids: [String] = []
                for try await change in things.changes(after: page.cursor) {
                    ids.append(change.id)
                    if ids.count == 50 { break }
                }
                return ids
            }
        }
        let (tasks, cancelled) = ((0..<200).map { _ in follow() }, (0..<200).map { _ in follow() })
        try await Self.awaitFollowers(1, client)
        for task in cancelled { task.cancel() }
        for task in cancelled { await #expect(throws: CancellationError.self) { try await task.value } }
        // Another query, and one with a deadline of its own, have requests of their own.
        let other = Task { for try await _ in things.changes(after: page.cursor, fields: []) {} }
        let limited = Task {
            try await CRUDClient.withDeadline(in: .seconds(60)) {
                for try await _ in things.changes(after: page.cursor) {}
            }
        }
        try await Self.awaitFollowers(3, client)
        other.cancel()
        limited.cancel()
        try await Self.awaitFollowers(1, client)
        for number in 0..<50 { try await things.create(id: "\(number)", item: number) }
        for task in tasks { #expect(try await task.value == (0..<50).map(String.init)) }
        try await Self.awaitFollowers(0, client)
    }

    /// Those for which the daemon has no room ask again, and miss nothing.
    @Test func moreThanMayWaitReceiveEverything() async throws {
        let daemon = try Self.daemon("followers_per_session: 10")
        let client = try await CRUDClient.connect(path: daemon.socketPath)
        let things = client.repository("things")
        try await things.create(id: "a", item: 0)
        try await withThrowingTaskGroup { group in
            for _ in 0..<40 {
                // Two cursors are never equal, so that no follower shares the request of another one.
                let page = try await things.changes(ChangeQuery(after: .now))
                group.addTask {
                    for try await change in things.changes(after: page.cursor) where change.id == "last" { return }
                }
            }
            try await Self.awaitFollowers(10, client)
            for number in 0..<20 { try await things.upsert(id: "\(number)", item: number) }
            try await things.create(id: "last", item: true)
            try await group.waitForAll()
        }
        #expect(try await things.count(.all) == 22)
    }
}
