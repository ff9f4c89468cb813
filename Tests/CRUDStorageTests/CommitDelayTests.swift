import CRUDPluginHost
import CRUDThreads
import Testing

@testable import CRUDStorage

@Suite struct CommitDelayTests {
    private static let duration = Duration.microseconds(900)

    /// Commits with so many mutations each, while which so many others come; returns what the next one waits for.
    private static func commit(_ delay: inout CommitDelay, _ count: Int, waiting: Int?) -> Int? {
        delay.committed(count, in: duration, waiting: waiting)
        return delay.next?.count
    }

    @Test func aCommitWaitsForAllThatTookPartInTheLast() {
        var delay = CommitDelay()
        #expect(delay.next == nil)
        #expect(Self.commit(&delay, 3, waiting: 13) == 16)
        #expect(delay.next?.limit == .microseconds(300))
        for _ in 0..<10 { #expect(Self.commit(&delay, 16, waiting: 0) == 16) }
        // One more client.
        #expect(Self.commit(&delay, 16, waiting: 1) == 17)
    }

    @Test(arguments: [(1, 0), (0, 5), (0, nil), (4, nil)] as [(Int, Int?)])
    func nothingIsWaitedFor(count: Int, waiting: Int?) {
        var delay = CommitDelay()
        #expect(Self.commit(&delay, count, waiting: waiting) == nil)
    }

    @Test func theDelayHasBounds() {
        var delay = CommitDelay()
        delay.committed(8, in: CommitDelay.shortestCommit - .nanoseconds(1), waiting: 8)
        #expect(delay.next == nil)
        delay.committed(8, in: .seconds(2), waiting: 8)
        #expect(delay.next?.limit == CommitDelay.longest)
    }

    /// Storage in this process, and such that commits each record by itself, is not made to wait.
    @Test(
        arguments: [
            ([], false), ([.transactions], true), ([.transactions, .fastReads], false), ([.fastReads], false),
        ] as [(Plugin.Capabilities, Bool)])
    func itPaysWhereManyShareACommit(capabilities: Plugin.Capabilities, pays: Bool) {
        #expect(CommitDelay.pays(with: capabilities) == pays)
    }

    /// Of clients that come by chance, ever fewer commits are delayed; of such that come back, each is again.
    @Test func vainDelaysGetRarer() {
        var delay = CommitDelay()
        var delayed: [Int] = []
        for number in 0..<200 where Self.commit(&delay, 2, waiting: 2) != nil { delayed.append(number) }
        #expect(delayed == [0, 2, 6, 14, 30, 62, 126, 190])
        while delay.next == nil { _ = Self.commit(&delay, 2, waiting: 2) }
        for _ in 0..<5 { #expect(Self.commit(&delay, 4, waiting: 0) == 4) }
    }
}
