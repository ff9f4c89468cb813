import CRUDPluginABI

/// Calls that nobody waits for any more.
enum InterruptChecks {
    /// A scan that takes at least so long can be interrupted.
    private static let leastDuration = Duration.milliseconds(10)
    private static let maximumRecords = 400_000
    private static let maximumBatch = 20_000
    /// Of the ids, which sort like numbers.
    private static let firstNumber = 1_000_000
    /// How long the records may take to write.
    private static let timeout = Duration.seconds(5)

    /// A scan of many records stops once `interrupted` returns non-zero, and the reader still works afterwards.
    static func scans(_ context: CheckContext) throws {
        let backend = try context.open()
        let collection = try context.collection("interrupts", of: backend)
        let reader = try backend.reader()
        let total = try fill(collection, reader, context)
        var calls = 0
        backend.call.isInterrupted = {
            calls += 1
            return true
        }
        let (count, isInterrupted) = try reader.scanCounting(collection)
        context.expect(isInterrupted, "a scan of \(total) records does not return CRUDD_INTERRUPTED")
        context.expect(calls > 0, "`interrupted` is never called")
        context.expect(count < total, "a scan that is interrupted emits all of its \(total) records")
        backend.call.isInterrupted = nil
        context.expect(
            try reader.scanCounting(collection).count, is: total, "records of a scan that is not interrupted")
        context.expect(
            try reader.read("\(firstNumber)", in: collection) != nil, "a record is not found after an interrupt")
    }

    /// Writes until a scan takes long enough, and returns how many records there are.
    private static func fill(
        _ collection: PluginCollection, _ reader: PluginReader, _ context: CheckContext
    ) throws -> Int {
        let clock = ContinuousClock()
        let start = clock.now
        let item = context.item(1)
        var total = 0
        var lastWrite = Duration.zero
        // A write of twice as many may take four times as long: some storages write all that they have.
        while total < maximumRecords, start.duration(to: clock.now) + lastWrite * 4 < timeout {
            let ids = (total..<total + min(max(1000, total), maximumBatch)).map { "\(firstNumber + $0)" }
            lastWrite = try clock.measure {
                _ = try collection.backend.write(ids.map { .put($0, bytes: item, in: collection) })
            }
            total += ids.count
            reader.endSnapshot()
            // The shortest of several, as others want the CPU too.
            let durations = try (0..<5).map { _ in try clock.measure { _ = try reader.scanCounting(collection) } }
            if durations.allSatisfy({ $0 >= leastDuration }) { return total }
        }
        throw NotApplicable(text: "a scan of \(total) records takes less than \(leastDuration)")
    }
}
