import CRUDPluginABI
import CRUDTestSupport
import Synchronization
import Testing

@Suite struct SnapshotTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/main.sqlite"
    }

    @Test func showsOneStateUntilItIsReleased() throws {
        let store = try Store(path: path)
        let clients = try store.collection("clients")
        let reader = try store.reader()
        try store.write([.put("a", "1"), .put("b", "1")], to: clients)
        #expect(try reader.item("a", in: clients) == "1")
        try store.write([.put("a", "2"), .put("b", "2")], to: clients)
        #expect(try reader.item("b", in: clients) == "1")
        reader.endSnapshot()
        reader.endSnapshot()
        #expect(try reader.item("b", in: clients) == "2")
        #expect(try store.reader().item("a", in: clients) == "2")
    }

    @Test func seesEveryAcknowledgedWriteAfterwards() async throws {
        let store = try Store(path: path, synchronous: "off")
        let shared = Shared(try store.collection("clients"))
        try store.write([.put("n", "0")], to: shared.collection)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for number in 1...3000 {
                    try store.write([.put("n", "\(number)")], to: shared.collection)
                    shared.acknowledged.store(number, ordering: .releasing)
                }
            }
            for _ in 0..<2 {
                group.addTask {
                    let reader = try store.reader()
                    for _ in 0..<3000 {
                        let least = shared.acknowledged.load(ordering: .acquiring)
                        reader.endSnapshot()
                        let number = try reader.item("n", in: shared.collection).flatMap { Int($0) }
                        #expect(try #require(number) >= least)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// What the tasks have in common.
    // The pointer is constant, and the contract allows its use by several threads.
    private final class Shared: @unchecked Sendable {
        let collection: OpaquePointer
        /// The last number whose write was acknowledged.
        let acknowledged = Atomic(0)

        init(_ collection: OpaquePointer) {
            self.collection = collection
        }
    }
}
