import CRUDModel
import CRUDTestSupport
import Testing

@testable import CRUDServer
@testable import CRUDStorage

/// Which requests of a session may be in flight together.
@Suite struct CollectionOrderTests {
    private static let kinds: [RequestKind] = [.read, .scan, .write, .slicedWrite]
    private let backend: UnopenedBackend
    private let collection: Collection

    init() throws {
        backend = try UnopenedBackend()
        collection = try backend.collection("clients")
    }

    /// Whether a request may start while an earlier one on the same collection is in flight.
    private static func mayOverlap(_ earlier: RequestKind, _ later: RequestKind, inOneIteration: Bool) -> Bool {
        switch (earlier, later) {
        // The backend executes them in order.
        case (.write, .write): true
        // They go to the backend together.
        case (.read, .read): inOneIteration
        // It waits for others' writes; no request of its session waits for it.
        case (.follow, _), (_, .follow): true
        default: false
        }
    }

    @Test func everyKindBesideEveryOther() {
        for earlier in Self.kinds + [.follow] {
            for later in Self.kinds {
                for iteration: UInt64 in [1, 2] {
                    var order = CollectionOrder()
                    order.count(earlier, on: collection, +1, in: 1)
                    #expect(
                        order.admits(later, on: collection, hasWaited: false, in: iteration)
                            == Self.mayOverlap(earlier, later, inOneIteration: iteration == 1),
                        "\(later) beside \(earlier)")
                    order.count(earlier, on: collection, -1, in: 1)
                    #expect(order.admits(later, on: collection, hasWaited: false, in: iteration))
                }
            }
        }
        #expect(collection.requestsInFlight == 0)
    }

    /// A read that has found more than there was room for comes before all that wait, and nothing overtakes it but the
    /// reads that begin again with it.
    @Test func aReadThatBeginsAgainStaysFirst() {
        var order = CollectionOrder()
        order.count(.read, on: collection, +1, in: 1)
        order.suspendRead(on: collection)
        for kind in Self.kinds { #expect(!order.admits(kind, on: collection, hasWaited: true, in: 1)) }
        #expect(order.admitsUnfinishedRead(on: collection, in: 2))
        order.resumeRead(on: collection, in: 2)
        #expect(order.admitsUnfinishedRead(on: collection, in: 2) && !order.admitsUnfinishedRead(on: collection, in: 3))
        order.count(.read, on: collection, -1, in: 3)
        #expect(order.admits(.slicedWrite, on: collection, hasWaited: false, in: 3))
    }

    /// A client must not make the loop compare each of many collections with each other one: that took seconds.
    @Test func manyCollectionsAreFoundAtOnce() throws {
        let collections = try (0..<4000).map { try backend.collection("c\($0)") }
        var order = CollectionOrder()
        // What is in flight holds up the last of them.
        order.count(.scan, on: collections[3999], +1, in: 1)
        let waiting = WaitingRequest(
            text: [], id: nil, arrival: .zero, deadline: .seconds(1), Wait(collections: collections, kind: .write))
        order.enqueue(waiting, isFirst: false)
        let begin = ContinuousClock.now
        for _ in 0..<10 { #expect(order.firstStartable(in: 2) == nil) }
        #expect(begin.duration(to: .now) < .seconds(10))
        order.count(.scan, on: collections[3999], -1, in: 2)
        #expect(order.firstStartable(in: 2) === waiting)
        order.remove(waiting)
        order.removeIdle()
        #expect(order.admits(.slicedWrite, on: collections[3999], hasWaited: false, in: 2))
    }

    private final class Request {
        let number: Int
        let kind: RequestKind
        let collections: [Collection]
        var waiting: WaitingRequest?
        var iteration: UInt64?

        init(_ number: Int, _ kind: RequestKind, _ collections: [Collection]) {
            (self.number, self.kind, self.collections) = (number, kind, collections)
        }

        func shares(_ other: Request) -> Bool {
            collections.contains { collection in other.collections.contains { $0 === collection } }
        }
    }

    /// Random requests on several collections, which end in any order: none starts beside one that it has to wait for,
    /// none overtakes one that waits, and all come to an end.
    @Test(arguments: 1...40)
    func nothingOvertakes(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        // More than are compared one by one.
        let names = seed.isMultiple(of: 2) ? ["a", "b", "c"] : (1...12).map { "c\($0)" }
        let collections = try names.map(backend.collection)
        var order = CollectionOrder()
        var open: [Request] = []
        var iteration: UInt64 = 1
        func start(_ request: Request) {
            for earlier in open where earlier.number < request.number && earlier.shares(request) {
                let isStarted = earlier.iteration != nil
                #expect(
                    isStarted
                        && Self.mayOverlap(
                            earlier.kind, request.kind, inOneIteration: earlier.iteration == iteration)
                )
            }
            request.iteration = iteration
            for collection in request.collections { order.count(request.kind, on: collection, +1, in: iteration) }
        }
        func end(_ request: Request) {
            open.removeAll { $0 === request }
            for collection in request.collections { order.count(request.kind, on: collection, -1, in: iteration) }
            while let waiting = order.firstStartable(in: iteration) {
                order.remove(waiting)
                guard let request = open.first(where: { $0.waiting === waiting }) else { return }
                start(request)
            }
            order.removeIdle()
        }
        for number in 0..<600 {
            let kind = try #require(Self.kinds.randomElement(using: &random))
            let count = kind == .write ? Int.random(in: 1...3, using: &random) : 1
            let request = Request(number, kind, Array(collections.shuffled(using: &random).prefix(count)))
            open.append(request)
            if request.collections.allSatisfy({ order.admits(kind, on: $0, hasWaited: false, in: iteration) }) {
                start(request)
            } else {
                let waiting = WaitingRequest(
                    text: [], id: nil, arrival: .zero, deadline: .seconds(1),
                    Wait(collections: request.collections, kind: kind))
                request.waiting = waiting
                order.enqueue(waiting, isFirst: false)
            }
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                guard let next = open.filter({ $0.iteration != nil }).randomElement(using: &random) else { break }
                end(next)
            }
            if Bool.random(using: &random) { iteration += 1 }
        }
        while let next = open.first(where: { $0.iteration != nil }) {
            iteration += 1
            end(next)
        }
        #expect(open.isEmpty && !order.hasWaiting)
        #expect(collections.allSatisfy { $0.requestsInFlight == 0 })
    }

    /// What has waited too long is taken out, the first on each collection first; a request on several collections is
    /// taken out of each.
    @Test func whatIsOverdueIsTakenOut() throws {
        let other = try backend.collection("others")
        var order = CollectionOrder()
        order.count(.slicedWrite, on: collection, +1, in: 1)
        func wait(_ collections: [Collection], until deadline: Duration) -> WaitingRequest {
            let request = WaitingRequest(
                text: [], id: nil, arrival: .zero, deadline: deadline, Wait(collections: collections, kind: .write))
            order.enqueue(request, isFirst: false)
            return request
        }
        let both = wait([collection, other], until: .seconds(1))
        let later = wait([other], until: .seconds(3))
        #expect(order.takeOverdue(at: .milliseconds(999)) == nil)
        #expect(order.takeOverdue(at: .seconds(1)) === both)
        #expect(order.takeOverdue(at: .seconds(2)) == nil)
        #expect(order.firstStartable(in: 1) === later)
    }
}
