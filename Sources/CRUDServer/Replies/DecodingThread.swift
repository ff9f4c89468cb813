import CRUDEventLoop
import CRUDJSON
import CRUDModel
import CRUDStorage
import CRUDThreads

/// Decodes long records of formats other than JSON, and finds parts of long ones, which would keep an event loop busy
/// for too long.
final class DecodingThread: Sendable {
    private let queue = WorkQueue<LongResult>()

    init(_ cache: RecordCache) throws(ThreadFailure) {
        _ = try Thread(named: "decoding") { [queue] in
            var writers: [Int: RecordWriter] = [:]
            while case .items(let items) = queue.take(timeout: nil) {
                for item in items {
                    let writer =
                        writers[item.maximumBytes] ?? RecordWriter(cache, maximumItemBytes: item.maximumBytes)
                    writers = [item.maximumBytes: writer]
                    item.make(by: writer)
                }
            }
        }
    }

    func append(_ result: LongResult) { _ = queue.append(result) }
}

/// A result that a ``DecodingThread`` makes.
final class LongResult: QueueItem, @unchecked Sendable {
    // @unchecked: it belongs to the loop until it is queued, to the thread until it is delivered, then to the loop
    // again; the thread does not touch `reply`.

    let maximumBytes: Int
    private let result: RecordsResult
    private var found: FoundRecords
    /// Replies with the result, on the loop. It is set before each time that it is made.
    var reply: ((LongResult, Result<[UInt8], CRUDError>) -> Void)?
    private let deliver: @Sendable (LongResult) -> Void
    private let isAbandoned: @Sendable () -> Bool
    private var outcome: Result<[UInt8], CRUDError> = .success([])

    /// The thread takes one after the other: each is long.
    let byteCount = Int.max / 4

    /// - Parameters:
    ///   - maximumBytes: how long an item may be.
    ///   - isAbandoned: whether the result is not wanted any more; called on the thread.
    ///   - deliver: called on the thread.
    init(
        _ result: RecordsResult, _ found: FoundRecords, maximumBytes: Int,
        isAbandoned: @escaping @Sendable () -> Bool, deliver: @escaping @Sendable (LongResult) -> Void
    ) {
        self.result = result
        self.found = found
        self.maximumBytes = maximumBytes
        self.isAbandoned = isAbandoned
        self.deliver = deliver
    }

    fileprivate func make(by writer: RecordWriter) {
        var output = StreamBuffer()
        var work = Work(shouldStop: isAbandoned)
        do throws(CRUDError) {
            try result.append(found.records, of: found.batch, by: writer, to: &output, &work)
            outcome = .success(Array(output.bytes))
        } catch {
            outcome = .failure(work.isStopped ? Self.overdue : error)
        }
        deliver(self)
    }

    private static let overdue = CRUDError(.unavailable, "the items were not decoded in time")

    /// Keeps what it is made of, and nothing of what was read with that; called on the loop.
    func separate() { found = found.batch.separate(found.records) }

    /// Replies; called on the loop.
    func finish() {
        let made = outcome
        outcome = .success([])
        // It is set again where the result has to be made again.
        reply.take()?(self, made)
    }
}
