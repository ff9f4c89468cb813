import CRUDPluginABI
import CRUDPluginHost
import Testing

@testable import CRUDStorage

/// What observers make of a commit.
@Suite struct CommitObserverTests {
    /// Shows a commit of one put, with the sequence number 7, to an observer.
    private func commit(
        to observer: some CommitObserver, outcome status: Int = CRUDD_OK, isAtomic: Bool = false,
        in collection: OpaquePointer? = nil, expiresAt: Int64 = 0
    ) {
        var record = crudd_record.sized()
        record.sequence = 7
        record.expires_at = expiresAt
        var outcome = crudd_outcome.sized()
        outcome.status = crudd_status(status)
        withUnsafePointer(to: record) { record in
            var mutation = crudd_mutation.sized()
            mutation.kind = UInt32(CRUDD_PUT)
            mutation.collection = collection
            mutation.record = record
            withUnsafePointer(to: mutation) { mutation in
                withUnsafePointer(to: outcome) { outcome in
                    observer.committed(
                        Commit(
                            mutations: UnsafeBufferPointer(start: mutation, count: 1),
                            outcomes: UnsafeBufferPointer(start: outcome, count: 1), status: crudd_status(CRUDD_OK),
                            isAtomic: isAtomic))
                }
            }
        }
    }

    // MARK: Feeds

    /// A mutation whose outcome is unknown may have been applied: a page must not end before it for ever.
    @Test(arguments: [false, true])
    func feedReachesAMutationOfUnknownOutcome(isAtomic: Bool) {
        let feeds = ChangeFeeds()
        feeds.open(lastSequence: 6)
        commit(to: feeds, outcome: CRUDD_OUTCOME_UNKNOWN, isAtomic: isAtomic)
        #expect(feeds.highWaterMark == 6, "it may still come")
        feeds.raise()
        #expect(feeds.highWaterMark == 7)
        #expect(feeds.confirmedMark == 6, "the storage may not have noted its number, and give it again")
        commit(to: feeds)
        #expect(feeds.confirmedMark == 7)
    }

    /// Its number is given out again after a restart.
    @Test func feedDoesNotReachARefusedMutation() {
        let feeds = ChangeFeeds()
        feeds.open(lastSequence: 6)
        commit(to: feeds, outcome: CRUDD_NO_SPACE)
        feeds.raise()
        #expect(feeds.highWaterMark == 6)
    }

    // MARK: Expiry

    /// The collection that is overdue for longest comes first, so that one with very many records keeps no other.
    @Test func expiryIsDueInTheOrderOfTime() throws {
        let schedule = ExpirySchedule()
        let collections = (1...20).compactMap { OpaquePointer(bitPattern: $0) }
        for (position, collection) in collections.enumerated() {
            commit(to: schedule, in: collection, expiresAt: Int64(100 - position))
        }
        for (position, collection) in collections.enumerated().reversed() {
            let first = try #require(schedule.first)
            #expect(first == (collection, Int64(100 - position)))
            // The next of its records expires later than those of the others.
            schedule.set(1000, for: collection)
        }
        #expect(schedule.earliest == 1000)
    }
}
