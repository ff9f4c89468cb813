import CRUDModel
import CRUDQuery

/// The mutations of one request, of which some have items that take long to make.
///
/// Another thread makes such an item. The writer reads the current record before, does everything else meanwhile, and
/// stores the item on condition that the record still has the revision that was read. Where another write has come
/// between, it begins again; after some attempts it makes the item itself, so that only another program can come
/// between. The mutations take effect in their order, those without a long item as in a batch.
package final class LongWrite: WriteTask, @unchecked Sendable {
    // @unchecked: as its superclass, one owner at a time.

    /// Holds the mutations, and gets their outcomes.
    package let batch: MutationBatch
    /// The first mutation that has no outcome.
    private var position = 0
    private var attempt = 1
    private var making: (item: LongWriteItem, job: LongRecordJob)?

    /// How often another thread makes an item.
    static let attemptsElsewhere = 3

    /// - Parameter collection: of the first mutation.
    init(_ batch: MutationBatch, in collection: BackendCollection, deliver: @escaping @Sendable (WorkItem) -> Void) {
        self.batch = batch
        batch.outcomes = Array(repeating: .notFound, count: batch.mutations.count)
        super.init(on: collection, deliver: deliver)
    }

    package override var byteCount: Int { batch.byteCount }

    override func writes(collectionNamed name: [UInt8]) -> Bool {
        batch.mutations.contains { $0.collection.name == name }
    }

    override var isWaiting: Bool { !isAbandoned && making?.job.isPending() == true }

    /// Executes the mutations up to the next long item, reads the record for that, or stores it.
    override func advance(with storage: OpenStorage) -> Bool {
        defer { storage.releaseSnapshot() }
        if isAbandoned {
            fail(CRUDError(.outcomeUnknown, "nobody waited for the write any more"))
            return true
        }
        if let item = making.take()?.item {
            store(item, storage)
        } else if batch.mutations[position].hasLongItem {
            begin(storage)
        } else {
            executeShort(storage)
        }
        return position == batch.mutations.count
    }

    private func executeShort(_ storage: OpenStorage) {
        let end = batch.mutations[position...].firstIndex(where: \.hasLongItem) ?? batch.mutations.count
        batch.openCollections(of: position..<end, with: storage.openForWriting)
        var commit = GroupCommit(storage)
        commit.append(batch, position..<end)
        commit.execute()
        position = end
    }

    // MARK: A long item

    private func begin(_ storage: OpenStorage) {
        let mutation = batch.mutations[position]
        do throws(CRUDError) {
            try storage.openForWriting(mutation)
            guard mutation.collection.isOpen, let transformation = mutation.transformation else {
                return end(.notFound)
            }
            let record = try storage.currentRecord(of: mutation, in: batch, nil)
            if let refusal = mutation.refusal(current: record?.revision, in: batch) { return end(refusal) }
            let item = LongWriteItem(of: record, by: transformation)
            if attempt > Self.attemptsElsewhere {
                item.make()
                store(item, storage)
            } else {
                making = (item, LongRecordJob(by: LongRecordThreads.writing) { _ in item.make() })
            }
        } catch {
            refuse(error, storage)
        }
    }

    private func store(_ item: LongWriteItem, _ storage: OpenStorage) {
        let mutation = batch.mutations[position]
        let end = batch.byteCount
        do throws(CRUDError) {
            let resolved = batch.resolve(mutation, as: try item.made(), of: item.record, at: position)
            // The collection may have been dropped meanwhile.
            let outcome =
                mutation.collection.isOpen
                ? storage.apply([PluginMutation(batch: batch, position: position, resolved: resolved)])[0] : .notFound
            guard outcome.isRefusal else { return self.end(outcome) }
            batch.removeBytes(from: end)
            attempt += 1
            guard attempt <= GroupCommit.maximumAttempts else { throw .contended }
        } catch {
            refuse(error, storage)
        }
    }

    private func refuse(_ error: CRUDError, _ storage: OpenStorage) {
        storage.noteIfCorrupt(batch.mutations[position], in: batch, error)
        end(.refused(error))
    }

    private func end(_ outcome: MutationOutcome) {
        batch.outcomes[position] = outcome
        position += 1
        attempt = 1
    }
}

extension WorkItem {
    /// The mutations that it makes, with their outcomes when it is done; nil for anything but a write.
    package var mutationBatch: MutationBatch? { self as? MutationBatch ?? (self as? LongWrite)?.batch }
}

extension Mutation {
    /// Whether it takes long to make its item.
    fileprivate var hasLongItem: Bool { transformation?.takesLong == true }
}

/// An item that another thread makes of the current record. It outlives its write where that ends early.
private final class LongWriteItem: @unchecked Sendable {
    // @unchecked: the thread that makes the item writes `result`; the writer reads it when that thread is done.

    let record: CurrentRecordReader.Record?
    private let transformation: any ItemTransformation
    private var result: Result<TransformedItem, CRUDError>?

    init(of record: CurrentRecordReader.Record?, by transformation: any ItemTransformation) {
        self.record = record
        self.transformation = transformation
    }

    func make() {
        do throws(CRUDError) {
            result = .success(try transformation.transform(record?.item))
        } catch {
            result = .failure(error)
        }
    }

    func made() throws(CRUDError) -> TransformedItem {
        guard let result else { throw CRUDError(.internalError, "the item was not made") }
        return try result.get()
    }
}
