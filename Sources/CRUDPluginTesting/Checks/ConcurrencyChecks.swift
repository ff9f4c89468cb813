import CRUDPluginABI
import CRUDThreads
import Synchronization

/// Concurrent readers, beside a writer.
enum ConcurrencyChecks {
    private static let readerCount = 3
    private static let batchCount = 60

    /// What readers see is whole, in order, and no older than the last write that was acknowledged before they released
    /// their snapshot.
    static func readers(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("readers", of: backend)
        let board = Board()
        let format = context.format
        _ = try backend.write(["a", "b", "c"].map { .put($0, bytes: item(0, format), revision: "0", in: collection) })
        let threads = try (0..<readerCount).map { number in
            try Thread(named: "reader \(number)") {
                do {
                    try read(backend, collection, format, board)
                } catch {
                    board.failures.withLock { $0.append("\(error)") }
                }
            }
        }
        do {
            for number in 1...batchCount {
                let mutations = ["a", "b", "c"].map {
                    PluginMutation.put($0, bytes: item(number, format), revision: "\(number)", in: collection)
                }
                context.expect(try backend.write(mutations), is: [.replaced, .replaced, .replaced], "a batch of puts")
                board.latest.store(number, ordering: .sequentiallyConsistent)
                if number.isMultiple(of: 20) { _ = try context.collection("created meanwhile \(number)", of: backend) }
            }
        } catch {
            context.add("\(error)")
        }
        board.isDone.store(true, ordering: .sequentiallyConsistent)
        for thread in threads { thread.join() }
        for failure in board.failures.withLock({ $0 }) { context.add(failure) }
    }

    /// What the writer and the readers share.
    private final class Board: Sendable {
        let latest = Atomic(0)
        let isDone = Atomic(false)
        let failures = Mutex<[String]>([])
    }

    /// Its size depends on the number as well, so that a torn item is noticed.
    private static func item(_ number: Int, _ format: String) -> [UInt8] {
        Sample.item(number, format, padding: number * 37 % 5000)
    }

    private static func read(
        _ backend: PluginBackend, _ collection: PluginCollection, _ format: String, _ board: Board
    ) throws(CallError) {
        let reader = try backend.reader()
        while !board.isDone.load(ordering: .sequentiallyConsistent) {
            let latest = board.latest.load(ordering: .sequentiallyConsistent)
            reader.endSnapshot()
            let records = try [
                reader.read(["a", "b", "c"], in: collection).compactMap { $0 }, reader.scan(collection),
            ]
            for records in records {
                guard records.map(\.id) == ["a", "b", "c"] else {
                    throw .violation("a reader beside the writer found the ids \(records.map(\.id)), not a, b and c")
                }
                for record in records {
                    let number = Int(record.revision) ?? -1
                    guard number >= latest else {
                        throw .violation("a reader saw write \(number) when \(latest) had been acknowledged")
                    }
                    guard record.bytes == item(number, format) else {
                        throw .violation("a reader saw an item of another write than its revision, \(number)")
                    }
                }
            }
        }
    }
}
