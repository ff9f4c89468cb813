import CRUDModel
import CRUDPluginCalls
import CRUDThreads

/// The whole life of a thread that reads for a backend: until its queue is closed.
enum ReaderThread {
    static func run(for backend: Backend, _ queue: ReadQueue, with reader: SnapshotReader) {
        var searches = RoundRobin<ReadTask>()
        while true {
            switch queue.take(timeout: searches.timeout) {
            case .items(let items): execute(items, from: queue, for: backend, with: reader, &searches)
            case .timedOut, .woken: break
            case .closed: return searches.end()
            }
            let before = searches.count
            if backend.isStorageDown { searches.end() }
            searches.advance { $0.advance(with: reader, child: backend.child, backend.failures) }
            queue.completed(before - searches.count)
        }
    }

    private static func execute(
        _ items: [ReadWork], from queue: ReadQueue, for backend: Backend, with reader: SnapshotReader,
        _ searches: inout RoundRobin<ReadTask>
    ) {
        var batches: [ReadBatch] = []
        var calls: [ReadCall] = []
        let searchesBefore = searches.count
        for work in items {
            let item = work.item
            if !item.isPrepared, !item.isReadable {
                // A child was lost since the item was sent here.
                backend.submitToWriter(.read(work))
            } else if backend.isStorageDown {
                if item.claim() { backend.refuse(item) }
            } else if item.claim() {
                switch work {
                case .batch(let batch): batches.append(batch)
                case .task(let task): searches.append(task)
                case .call(let call): calls.append(call)
                }
            }
        }
        reader.execute(batches)
        // Before they are delivered: whoever has waited may submit the next read at once.
        queue.completed(items.count - calls.count - (searches.count - searchesBefore))
        for batch in batches { batch.finish() }
        reader.releaseSnapshot()
        for call in calls {
            call.execute(with: reader)
            reader.releaseSnapshot()
            queue.completed(1)
            call.finish()
        }
    }
}
