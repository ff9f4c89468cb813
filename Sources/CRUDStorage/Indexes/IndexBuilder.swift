import CRUDModel
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery
import CRUDThreads

/// Fills new indexes in the background, on the writer's thread, in steps of about two milliseconds.
///
/// The to-do list is the storage itself: a step scans some of the records that have no key yet, by id, makes the keys
/// of all indexes of the collection and has the plugin store them, on condition that the record is unchanged. When the
/// scan has reached its end the index can serve; what is still unkeyed then (a value too long for a key, an item that
/// cannot be decoded, a record that somebody else has edited) is a candidate of every query. So nothing has to be
/// remembered over restarts: whatever a kill has left undone is still unkeyed. A rebuild forgets all keys, and is a
/// build then.
///
/// Clients come first: how long a step is, and the pause after it, is the ``StepPacer``'s to say.
final class IndexBuilder: BackgroundWork {
    private let storage: OpenStorage
    private var builds: [Build] = []
    // With fewer records in a step the commits take most of the time.
    private var pacer = StepPacer(stepDuration: .milliseconds(2), records: 32, within: 32...1024)

    /// The most bytes of items that a step looks at.
    private static let maximumStepBytes = 4 << 20
    /// With fewer unkeyed records an index serves before they have been looked at.
    private static let fewRecords = 64

    /// The indexes of one collection on their way to completion.
    private final class Build {
        let collection: BackendCollection
        let indexes: IndexSet
        let generation: Int
        /// The index whose unkeyed records are looked at.
        var number = 0
        /// The last record that has been looked at.
        var position: [UInt8] = []
        /// Whether the plugin does not have the index yet.
        var awaitsStorage = false
        var isCounted = false

        init(_ collection: BackendCollection, _ indexes: IndexSet) {
            self.collection = collection
            self.indexes = indexes
            generation = indexes.generation
        }
    }

    init(_ storage: OpenStorage) {
        self.storage = storage
    }

    /// How long until the next step; nil where there is nothing to do.
    var timeUntilDue: Duration? { builds.isEmpty ? nil : max(.zero, pacer.nextStep - MonotonicTime.now) }

    /// Adds the indexes of a collection that has been opened. Those that lack only a few keys serve at once.
    func add(_ collection: BackendCollection) {
        guard let indexes = collection.indexes, !builds.contains(where: { $0.indexes === indexes }),
            indexes.usable.count < indexes.paths.count
        else { return }
        let build = Build(collection, indexes)
        builds.append(build)
        // A failure shows in the first step again.
        while indexes.usable.count < indexes.paths.count, (try? hasFewUnkeyed(build, indexes.usable.count)) == true {
            indexes.become(ready: indexes.usable.count + 1)
        }
        if indexes.usable.count < indexes.paths.count { try? countProgress(of: build) }
    }

    private func hasFewUnkeyed(_ build: Build, _ index: Int) throws(CRUDError) -> Bool {
        let counter = RecordCounter()
        var scan = RecordScan(.unkeyed(index: index))
        scan.limit = Self.fewRecords
        scan.withItems = false
        try self.scan(scan, of: build, into: counter)
        return counter.count < Self.fewRecords
    }

    private func scan(_ scan: RecordScan, of build: Build, into visitor: any RecordVisitor) throws(CRUDError) {
        defer { storage.releaseSnapshot() }
        build.awaitsStorage = false
        try storage.reader().scan(
            scan, of: build.collection, into: visitor,
            onMissingOrder: { reason in
                build.awaitsStorage = true
                build.indexes.awaitStorage(because: reason)
            })
    }

    private final class RecordCounter: RecordVisitor {
        private(set) var count = 0

        func visit(_ record: FoundRecord) -> Bool {
            count += 1
            return true
        }
    }

    /// Begins a rebuild of a collection's indexes, and delivers the request.
    func rebuild(_ request: ReindexRequest) {
        defer { request.finish() }
        let collection = request.collection
        do throws(CRUDError) {
            if !collection.isCurrent { try storage.open(collection) }
            guard let indexes = collection.indexes else { return }
            builds.removeAll { $0.indexes === indexes }
            try storage.forgetKeys(of: collection)
        } catch {
            request.failure = error
        }
    }

    private func count(_ collection: BackendCollection, _ order: RecordScan.Order) throws(CRUDError) -> Int {
        defer { storage.releaseSnapshot() }
        return try storage.reader().count(RecordScan(order), of: collection)
    }

    /// Executes a step if it is time for one.
    func advanceIfDue() {
        guard !builds.isEmpty, pacer.nextStep <= MonotonicTime.now else { return }
        let build = builds.removeFirst()
        do throws(CRUDError) {
            let isDone = build.indexes.generation != build.generation ? true : try advance(build)
            if !isDone { builds.insert(build, at: 0) }
        } catch {
            // The failure has been logged. Other collections come first now.
            builds.append(build)
            if !build.awaitsStorage { try? storage.restoreIndexes(of: build.collection) }
            pacer.failed()
        }
    }

    /// Looks at some records; true when the build is complete.
    private func advance(_ build: Build) throws(CRUDError) -> Bool {
        let begin = MonotonicTime.now
        let step = RecordStep(.setKeys, in: build.collection, maximumBytes: Self.maximumStepBytes)
        var scan = RecordScan(.unkeyed(index: build.number))
        scan.after = build.position.isEmpty ? nil : (key: [], id: build.position)
        scan.limit = pacer.records
        try self.scan(scan, of: build, into: step)
        if !build.isCounted, build.indexes.usable.count < build.indexes.paths.count { try countProgress(of: build) }
        let isLast = step.count < pacer.records && !step.isFull
        // A record that has been changed meanwhile got its keys with the change.
        try storage.execute(step)
        build.indexes.advance(by: step.batch.mutations.count)
        pacer.ended(begun: begin, records: step.count)
        guard isLast else {
            build.position = step.lastID
            return false
        }
        build.position = []
        build.number += 1
        build.indexes.become(ready: max(build.number, build.indexes.usable.count))
        return build.number == build.indexes.paths.count
    }

    /// Sets how far a build has got. Keys are counted, for an index has them together: to look for records without one
    /// takes as long as a scan of all.
    private func countProgress(of build: Build) throws(CRUDError) {
        let total = try count(build.collection, .id)
        // Nothing is indexed in one that is not there yet; it is counted with the first step.
        let indexed = build.awaitsStorage ? 0 : try count(build.collection, .key(index: build.indexes.usable.count))
        build.indexes.set(total: total, indexed: indexed)
        build.isCounted = !build.awaitsStorage
    }
}
