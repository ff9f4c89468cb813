import CRUDThreads
import Glibc
import Synchronization

/// Follows the changes of a collection on a thread of its own, and keeps what the records are by what it is told.
package final class RecordFollower: Sendable {
    private let daemon: Daemon
    private let collection: String
    private let state: Shared
    private let thread: Thread

    private final class Shared: Sendable {
        struct State {
            var items: [String: String] = [:]
            var failure: String?
            var isOver = false
        }

        let state = Mutex(State())
    }

    package init(of daemon: Daemon, _ collection: String) throws {
        self.daemon = daemon
        self.collection = collection
        let shared = Shared()
        state = shared
        thread = try Thread(named: "follower") {
            do {
                try Self.follow(collection, daemon.connect(), shared)
            } catch {
                shared.state.withLock { $0.failure = "\(error)" }
            }
        }
    }

    deinit { end() }

    private func end() {
        guard
            !state.state.withLock({ state in
                defer { state.isOver = true }
                return state.isOver
            })
        else { return }
        thread.join()
    }

    private static func follow(_ collection: String, _ connection: Connection, _ shared: Shared) throws {
        var cursor = ""
        while !shared.state.withLock(\.isOver) {
            let after = cursor.isEmpty ? "" : #","after":"\#(cursor)","wait":1"#
            let reply = try connection.call(
                "collection.changes", #"{"collection":\#(JSON.quote(collection))\#(after)}"#)
            if reply.error?.name == "unavailable" {
                poll(nil, 0, 10)
                continue
            }
            guard let changes = reply.result?["changes"]?.elements, let next = reply.result?["cursor"]?.string else {
                throw Failure("\(reply)")
            }
            cursor = next
            shared.state.withLock { state in
                for change in changes {
                    guard let id = change["id"]?.string else { continue }
                    state.items[id] = change["item"]?.text
                }
            }
        }
    }

    /// Why it does not follow any more; nil: it does.
    package var failure: String? { state.state.withLock(\.failure) }

    /// Waits until the follower has heard of everything; nothing may be written any more.
    ///
    /// - Returns: how what it was told differs from what is stored.
    package func differences() throws -> [String] {
        let connection = try daemon.connect()
        let reply = try connection.call("record.query", #"{"collection":\#(JSON.quote(collection))}"#)
        guard let records = reply.result?["records"]?.elements else { throw Failure("\(reply)") }
        let stored = Dictionary(
            uniqueKeysWithValues: records.map { ($0["id"]?.string ?? "", $0["item"]?.text ?? "") })
        let deadline = Deadline()
        while state.state.withLock({ $0.items != stored && $0.failure == nil }), !deadline.hasPassed {
            poll(nil, 0, 20)
        }
        end()
        let (followed, failure) = state.state.withLock { ($0.items, $0.failure) }
        return [failure].compactMap(\.self)
            + Set(followed.keys).union(stored.keys).sorted().compactMap { id in
                followed[id] == stored[id]
                    ? nil : "\(id): \(followed[id] ?? "none") was told, \(stored[id] ?? "none") is stored"
            }
    }
}
