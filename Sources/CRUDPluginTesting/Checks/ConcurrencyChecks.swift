import CRUDPluginABI
import CRUDPluginHost
import Synchronization

/// Readers beside each other and beside the backend's own calls.
enum ConcurrencyChecks {
    private static let readerCount = 3
    private static let batchCount = 60

    /// What readers see is whole, in order, and no older than the last write that was answered before they let go of
    /// their view.
    static func readers(_ trial: Trial) throws {
        let backend = try trial.open()
        let collection = try trial.collection("readers", of: backend)
        let board = Board()
        let format = trial.format
        _ = try backend.write(["a", "b", "c"].map { .put($0, bytes: item(0, format), revision: "0", in: collection) })
        let threads = try (0..<readerCount).map { number in
            try Thread(named: "reader \(number)") {
                do {
                    try read(backend, collection, format, board)
                } catch {
                    board.faults.withLock { $0.append("\(error)") }
                }
            }
        }
        do {
            for number in 1...batchCount {
                let mutations = ["a", "b", "c"].map {
                    PluginMutation.put($0, bytes: item(number, format), revision: "\(number)", in: collection)
                }
                trial.expect(try backend.write(mutations), is: [.replaced, .replaced, .replaced], "a batch of puts")
                board.latest.store(number, ordering: .sequentiallyConsistent)
                if number.isMultiple(of: 20) { _ = try trial.collection("made meanwhile \(number)", of: backend) }
            }
        } catch {
            trial.add("\(error)")
        }
        board.isDone.store(true, ordering: .sequentiallyConsistent)
        for thread in threads { thread.join() }
        for fault in board.faults.withLock({ $0 }) { trial.add(fault) }
    }

    /// What the writer and the readers tell each other.
    private final class Board: Sendable {
        let latest = Atomic(0)
        let isDone = Atomic(false)
        let faults = Mutex<[String]>([])
    }

    /// Its size tells the number as well, so that a torn item shows.
    private static func item(_ number: Int, _ format: String) -> [UInt8] {
        Sample.item(number, format, padding: number * 37 % 5000)
    }

    private static func read(
        _ backend: PluginBackend, _ collection: PluginCollection, _ format: String, _ board: Board
    ) throws(CallFault) {
        let reader = try backend.reader()
        while !board.isDone.load(ordering: .sequentiallyConsistent) {
            let latest = board.latest.load(ordering: .sequentiallyConsistent)
            reader.endSnapshot()
            let records = try [
                reader.read(["a", "b", "c"], in: collection).compactMap { $0 }, reader.scan(collection),
            ]
            for records in records {
                guard records.map(\.id) == ["a", "b", "c"] else {
                    throw .breach("a reader beside the writer found the ids \(records.map(\.id)), not a, b and c")
                }
                for record in records {
                    let number = Int(record.revision) ?? -1
                    guard number >= latest else {
                        throw .breach("a reader saw write \(number) when \(latest) had been answered")
                    }
                    guard record.bytes == item(number, format) else {
                        throw .breach("a reader saw an item of another write than its revision, \(number)")
                    }
                }
            }
        }
    }
}
