import CRUDPluginTesting
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
        let backend = try PluginBackend(path: path)
        let clients = try backend.open("clients")
        let reader = try backend.reader()
        _ = try backend.write([.put("a", "1", in: clients), .put("b", "1", in: clients)])
        #expect(try reader.read("a", in: clients)?.item == "1")
        _ = try backend.write([.put("a", "2", in: clients), .put("b", "2", in: clients)])
        #expect(try reader.read("b", in: clients)?.item == "1")
        reader.endSnapshot()
        reader.endSnapshot()
        #expect(try reader.read("b", in: clients)?.item == "2")
        #expect(try backend.reader().read("a", in: clients)?.item == "2")
    }

    @Test func seesEveryAcknowledgedWriteAfterwards() async throws {
        let backend = try PluginBackend(path: path, synchronous: "off")
        let clients = try backend.open("clients")
        let progress = Progress()
        _ = try backend.write([.put("n", "0", in: clients)])
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for number in 1...3000 {
                    _ = try backend.write([.put("n", "\(number)", in: clients)])
                    progress.acknowledged.store(number, ordering: .releasing)
                }
            }
            for _ in 0..<2 {
                group.addTask {
                    let reader = try backend.reader()
                    for _ in 0..<3000 {
                        let least = progress.acknowledged.load(ordering: .acquiring)
                        reader.endSnapshot()
                        let number = try reader.read("n", in: clients).flatMap { Int($0.item) }
                        #expect(try #require(number) >= least)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    private final class Progress: Sendable {
        /// The last number whose write was acknowledged.
        let acknowledged = Atomic(0)
    }
}
