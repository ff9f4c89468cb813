import CRUDThreads

/// What a backend's writer executes. Each case has its branch in ``BackendWorker``; reads are passed on to the threads
/// that read, where there are such.
enum BackendWork: QueueItem {
    case read(ReadWork)
    case write(MutationBatch)
    case bulkWrite(WriteTask)
    case reindex(ReindexRequest)
    case call(StorageCall)

    var item: WorkItem {
        switch self {
        case .read(let work): work.item
        case .write(let batch): batch
        case .bulkWrite(let task): task
        case .reindex(let request): request
        case .call(let call): call
        }
    }

    var byteCount: Int { item.byteCount }

    /// Atomic batches gain nothing from each other: each is a commit of its own.
    var operationCount: Int? {
        if case .write(let batch) = self, !batch.isAtomic { batch.mutations.count } else { nil }
    }
}

/// What a thread that reads executes: each case has its branch in ``ReaderThread``.
enum ReadWork: QueueItem {
    case batch(ReadBatch)
    case task(ReadTask)
    case call(ReadCall)

    var item: WorkItem {
        switch self {
        case .batch(let batch): batch
        case .task(let task): task
        case .call(let call): call
        }
    }

    var byteCount: Int { item.byteCount }
}
