import CRUDJSON
import CRUDModel
import CRUDPluginHost
import CRUDTestSupport
import Synchronization
import Testing

@testable import CRUDStorage

/// Writes whose items take long to make.
@Suite struct LongWriteTests {
    private let loop: TestLoop
    private let test: TestBackend
    private let client: BackendClient
    private let clients = collection("clients")

    init() throws {
        loop = try TestLoop()
        test = try TestBackend.opened()
        client = BackendClient(test.backend, loop: loop)
        try test.write(.put("a", "1", "r1"), in: clients)
    }

    /// Appends a text to an item, and takes as long as the test wants.
    private final class Appending: ItemTransformation {
        private let text: String
        private let waits: Bool
        var byteCount: Int { waits ? LongItem.leastBytes : 0 }
        /// Gets a value at each attempt, which then waits for its turn.
        let begun: Inbox<Void>
        private let turns: Inbox<Void>

        /// - Parameter turns: how many attempts need not wait.
        init(_ text: String, takesLong: Bool = true, turns: Int = 0) throws {
            self.text = text
            waits = takesLong
            begun = try Inbox()
            self.turns = try Inbox()
            for _ in 0..<turns { pass() }
        }

        func pass() { turns.put(()) }

        func transform(_ item: [UInt8]?, _ work: inout Work) throws(CRUDError) -> TransformedItem {
            begun.put(())
            do {
                if waits { try turns.take() }
            } catch {
                throw CRUDError(.internalError, "the test has not let it continue")
            }
            guard text != "refused" else { throw CRUDError(.limitExceeded, "it would be too long") }
            return TransformedItem(stored: (item ?? []) + Array(text.utf8))
        }
    }

    private func submit(_ changes: (Change, Appending?)..., of session: Int = 1, for completion: TestCompletion) {
        let batch = client.pendingMutations(of: session, transforms: true)
        let mutations = changes.map { change, transformation in
            batch.mutation(change, in: clients, transformation: transformation)
        }
        client.append(mutations, to: batch, for: completion)
        client.flush()
    }

    /// Before, the item was made on the thread that writes.
    @Test func othersWriteMeanwhile() throws {
        let completion = TestCompletion()
        let appending = try Appending("2")
        submit((.put("a", "", "r2"), appending), for: completion)
        _ = try appending.begun.take()
        try test.write(.put("b", "x", "r"), in: clients)
        #expect(completion.events.isEmpty)
        appending.pass()
        try loop.complete(by: client)
        #expect(completion.events == ["replaced", "ended"])
        #expect(try test.read(["a", "b"], in: clients) == .records(["12@r2", "x@r"]))
    }

    /// It is made of what another write has left there; the last attempt is one that no write can disturb.
    @Test func anItemIsMadeAgainWhereTheRecordHasChanged() throws {
        let completion = TestCompletion()
        let appending = try Appending("+")
        submit((.put("a", "", "r9"), appending), for: completion)
        for attempt in 1...LongWrite.attemptsElsewhere {
            _ = try appending.begun.take()
            try test.write(.put("a", "\(attempt)", "s\(attempt)"), in: clients)
            appending.pass()
        }
        _ = try appending.begun.take()
        let delivered = try Inbox<WorkItem>()
        let other = test.submit([.put("a", "later", "r3", if: .revision("r9"))], in: clients, to: delivered)
        appending.pass()
        try loop.complete(by: client)
        _ = try delivered.take()
        #expect(completion.events == ["replaced", "ended"])
        #expect(other.outcomeTexts == ["replaced"])
        #expect(appending.begun.count == 0)
        #expect(try test.read(["a"], in: clients) == .records(["later@r3"]))
        #expect(test.plugin[.violations] == 0)
    }

    @Test func mutationsTakeEffectInTheirOrder() throws {
        let completion = TestCompletion()
        submit(
            (.put("a", "x", "r2"), nil), (.put("a", "", "r3"), try Appending("y", turns: 1)),
            (.check("a", if: .revision("r3")), nil), (.put("a", "", "r4"), try Appending("z", takesLong: false)),
            (.put("b", "", "r5", if: .present), try Appending("0")),
            (.put("c", "", "r6", if: .absent), try Appending("0", turns: 1)),
            (.put("a", "", "r7"), try Appending("refused", turns: 1)), (.remove("b"), nil), for: completion)
        try loop.complete(by: client)
        #expect(
            completion.events == [
                "replaced, replaced, applied, replaced, not found, applied, refused limit_exceeded, not found", "ended",
            ])
        #expect(try test.read(["a", "b", "c"], in: clients) == .records(["xyz@r4", nil, "0@r6"]))
        #expect(test.plugin[.violations] == 0)
    }

    /// What comes later waits in its session; that of others does not.
    @Test func anotherLongWriteDoesNotWait() throws {
        let (first, second) = (try Appending("2"), try Appending("3", turns: 1))
        let (firstCompletion, secondCompletion) = (TestCompletion(), TestCompletion())
        submit((.put("a", "", "r2"), first), for: firstCompletion)
        _ = try first.begun.take()
        submit((.put("b", "", "r3"), second), of: 2, for: secondCompletion)
        try loop.complete(by: client)
        #expect(firstCompletion.events.isEmpty && secondCompletion.events == ["applied", "ended"])
        first.pass()
        try loop.complete(by: client)
        #expect(firstCompletion.events == ["replaced", "ended"])
    }

    /// A reload that maps a collection without records elsewhere must not take this one for empty: the record would be
    /// acknowledged, and stored where nothing is served.
    @Test func aCollectionIsNotEmptyWhileItGetsARecord() throws {
        try test.write(.remove("a"), in: clients)
        func hasRecords(_ format: CollectionRule.Format = .json) throws -> Bool {
            try test.backend.hasRecords(clients.name, format, within: .seconds(30))
        }
        #expect(try !hasRecords())
        let completion = TestCompletion()
        let appending = try Appending("2")
        submit((.put("b", "", "r2"), appending), for: completion)
        _ = try appending.begun.take()
        #expect(try hasRecords())
        #expect(try !hasRecords(.xml), "it is written in one format")
        appending.pass()
        try loop.complete(by: client)
        #expect(completion.events == ["applied", "ended"])
        #expect(try hasRecords())
    }

    /// The collection is served from another place once its item has been made.
    @Test func nothingIsStoredInAFormerPlace() throws {
        let isElsewhere = Mutex(false)
        let test = try TestBackend.opened(capabilities: [.concurrentReads, .transactions]) { _, _, _ in
            isElsewhere.withLock { $0 } ? CRUDError(.unavailable, "it has moved") : nil
        }
        try test.write(.put("a", "1", "r1"), in: clients)
        let client = BackendClient(test.backend, loop: loop)
        for isAtomic in [false, true] {
            let completion = TestCompletion()
            let appending = try Appending("2")
            let batch =
                isAtomic
                ? MutationBatch(isAtomic: true, of: 1, deliver: client.deliver)
                : client.pendingMutations(of: 1, transforms: true)
            let mutation = batch.mutation(.put("a", "", "r2"), in: clients, transformation: appending)
            if isAtomic {
                client.submit(atomic: batch, [mutation], for: completion)
            } else {
                client.append(mutation, to: batch, for: completion)
            }
            client.flush()
            _ = try appending.begun.take()
            isElsewhere.withLock { $0 = true }
            clients.isAdmitted = false
            appending.pass()
            try loop.complete(by: client)
            #expect(completion.events == ["refused unavailable", "ended"])
            isElsewhere.withLock { $0 = false }
            #expect(try test.read(["a"], in: clients) == .records(["1@r1"]))
        }
    }

    /// Its time is over while the item is being made: nothing is stored later.
    @Test func anOverdueWriteIsNotMade() throws {
        let completion = TestCompletion(deadline: .seconds(5))
        let appending = try Appending("2")
        submit((.put("a", "", "r2"), appending), for: completion)
        _ = try appending.begun.take()
        client.expire(at: .seconds(6))
        #expect(completion.events == ["overdue: outcome_unknown"])
        try loop.complete(by: client)
        #expect(completion.events == ["overdue: outcome_unknown", "ended"])
        appending.pass()
        #expect(try test.read(["a"], in: clients) == .records(["1@r1"]))
    }
}
