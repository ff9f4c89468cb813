import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery
import CRUDTestSupport
import Testing

@testable import CRUDStorage

/// How reads become calls, and what the outcomes of the calls are to them.
@Suite struct CoalescedReadTests {
    private let clients = collection("clients")
    private let orders = collection("orders")

    /// A read, written out.
    private struct Wanted {
        var ids: [String]
        var collection: BackendCollection
        var withItems = true
        var maximumBytes = Int.max

        init(
            _ ids: [String], in collection: BackendCollection, withItems: Bool = true, maximumBytes: Int = .max
        ) {
            self.ids = ids
            self.collection = collection
            self.withItems = withItems
            self.maximumBytes = maximumBytes
        }
    }

    /// A batch with these reads, ready to be executed.
    private func batch(_ reads: Wanted...) -> ReadBatch {
        let batch = ReadBatch { _ in }
        for read in reads {
            let places = read.ids.map { batch.store(Array($0.utf8).span) }
            batch.append(
                Read(
                    read.withItems ? .records(places) : .existence(places), in: read.collection,
                    maximumBytes: read.maximumBytes))
        }
        batch.prepareResults()
        return batch
    }

    private func texts(_ calls: [CoalescedRead]) -> [[String]] {
        calls.map { $0.ids.map { String(decoding: $0.buffer, as: UTF8.self) } }
    }

    /// The results of a batch's reads: items, `-` where there is none, or what went wrong.
    private func results(_ batch: ReadBatch) -> [String] {
        batch.reads.indices.map { position in
            switch batch.result(at: position) {
            case .records(let records):
                records.map { record in
                    record.map { String(decoding: batch.found($0.item), as: UTF8.self) } ?? "-"
                }.joined(separator: " ")
            case .count(let count): "\(count)"
            case .partial(let records, let lacking):
                "\(records.count { $0 != nil }) found, \(lacking) lacking"
            case .failed(let error): error.code.name
            }
        }
    }

    /// Gives a call a record.
    ///
    /// - Returns: whether it wants another one.
    @discardableResult
    private func give(_ item: String, at index: Int, to call: CoalescedRead) -> Bool {
        Array(item.utf8).withUnsafeBytes { item in
            let none = UnsafeRawBufferPointer(rebasing: item.prefix(0))
            return call.receive(index: index, FoundRecord(id: none, item: item, revision: none, expiresAt: 7))
        }
    }

    @Test func neighboursOfOneKindShareACall() {
        let first = batch(Wanted(["a", "b"], in: clients), Wanted([], in: clients), Wanted(["c"], in: clients))
        let second = batch(
            Wanted(["d"], in: clients), Wanted(["e"], in: clients, withItems: false), Wanted(["f"], in: orders),
            Wanted(["g"], in: clients))
        let calls = CoalescedRead.all(of: [first, second])
        #expect(texts(calls) == [["a", "b", "c", "d"], ["e"], ["f"], ["g"]])
        #expect(calls.map { $0.collection === clients } == [true, true, false, true])
        #expect(calls.map(\.withItems) == [true, false, true, true])
    }

    @Test func refusedReadIsNotExecuted() {
        let refused = batch(Wanted(["a"], in: clients), Wanted(["b"], in: orders), Wanted(["c"], in: clients))
        refused.refuse(1, CRUDError(.limitExceeded, ""))
        refused.prepareResults()
        let calls = CoalescedRead.all(of: [refused])
        #expect(texts(calls) == [["a", "c"]])
        give("1", at: 1, to: calls[0])
        calls[0].succeed()
        #expect(results(refused) == ["-", "limit_exceeded", "1"])
    }

    @Test(arguments: [
        (Array(repeating: 1, count: 1001), [1000, 1]), (Array(repeating: 16, count: 63), [992, 16]),
        ([16, 1], [17]), ([17, 1], [17, 1]), ([1, 17, 1], [1, 17, 1]), ([2000, 1], [2000, 1]),
    ])
    func requestsOfFewIDsShareACallOfAtMostAThousand(reads: [Int], calls: [Int]) {
        let batches = reads.map { batch(Wanted((0..<$0).map { "\($0)" }, in: clients)) }
        #expect(CoalescedRead.all(of: batches).map(\.ids.count) == calls)
    }

    /// Plugins emit in the order of the ids, or in another one.
    @Test(arguments: [[0, 1, 3, 4, 5], [5, 4, 3, 1, 0], [3, 0, 5, 1, 4]])
    func eachReadGetsItsOwnRecords(order: [Int]) {
        let first = batch(Wanted(["a", "b"], in: clients), Wanted([], in: clients), Wanted(["x"], in: clients))
        let second = batch(Wanted(["c", "d", "a"], in: clients))
        let call = CoalescedRead.all(of: [first, second])[0]
        for index in order { #expect(give("\(index)", at: index, to: call)) }
        #expect(give("beyond", at: 6, to: call) && give("before", at: -1, to: call))
        #expect(give("twice", at: 0, to: call), "a record that comes twice is not kept twice")
        call.succeed()
        #expect(results(first) == ["0 1", "", "-"])
        #expect(results(second) == ["3 4 5"])
        guard case .records(let records) = first.result(at: 0) else { return }
        #expect(records.map { $0?.expiresAt } == [7, 7])
    }

    @Test func itemIsNotKeptWhereOnlyExistenceIsAsked() {
        let asked = batch(Wanted(["a"], in: clients, withItems: false, maximumBytes: 1))
        let call = CoalescedRead.all(of: [asked])[0]
        give("a long item", at: 0, to: call)
        call.succeed()
        #expect(results(asked) == [""])
    }

    @Test func resultThatIsTooLongIsNotKept() {
        let alone = batch(Wanted(["a", "b"], in: clients, maximumBytes: 3))
        var call = CoalescedRead.all(of: [alone])[0]
        #expect(give("12", at: 0, to: call))
        #expect(!give("34", at: 1, to: call), "nobody wants another one")
        call.succeed()
        #expect(results(alone) == ["1 found, 1 lacking"])

        let beside = batch(Wanted(["a", "b"], in: clients, maximumBytes: 1), Wanted(["c"], in: clients))
        call = CoalescedRead.all(of: [beside])[0]
        for index in 0..<3 { #expect(give("12", at: index, to: call), "others do") }
        call.succeed()
        #expect(results(beside) == ["0 found, 3 lacking", "12"])
    }

    /// What has been found is not asked for again, but takes its room.
    @Test(arguments: [(6, "1 22 - 333"), (5, "2 found, 1 lacking")])
    func aReadContinuesWithWhatItLacks(maximumBytes: Int, result: String) {
        let first = batch(Wanted(["a", "b", "c", "d"], in: clients, maximumBytes: 3))
        var call = CoalescedRead.all(of: [first])[0]
        #expect(call.maximumBytes == 3)
        // In any order.
        #expect(give("22", at: 1, to: call) && give("1", at: 0, to: call) && !give("333", at: 3, to: call))
        call.succeed()
        guard case .partial(let records, lacking: 3) = first.result(at: 0) else {
            Issue.record("\(first.result(at: 0))")
            return
        }
        let found = first.separate(records)

        let second = batch(Wanted(["x"], in: clients), Wanted(["a", "b", "c", "d"], in: clients))
        let places = ["a", "b", "c", "d"].map { second.store(Array($0.utf8).span) }
        var read = Read(.records(places), in: clients, maximumBytes: maximumBytes)
        read.found = second.keep(found)
        second.append(read)
        second.prepareResults()
        call = CoalescedRead.all(of: [second])[0]
        #expect(texts([call]) == [["x", "a", "b", "c", "d", "c", "d"]])
        #expect(call.maximumBytes == nil, "others share the call")
        give("333", at: 6, to: call)
        call.succeed()
        #expect(results(second) == ["-", "- - - -", result])
    }

    /// Where one read alone may be the cause of a failure, each is tried by itself.
    @Test(arguments: [.corrupt, .internalError, .unsupported] as [CRUDError.Code])
    func oneReadDoesNotFailTheOthers(code: CRUDError.Code) {
        let first = batch(Wanted(["a", "b"], in: clients), Wanted(["c"], in: clients))
        let second = batch(Wanted(["d"], in: clients))
        let call = CoalescedRead.all(of: [first, second])[0]
        give("lost", at: 0, to: call)
        let instead = call.fail(CRUDError(code, ""))
        #expect(texts(instead) == [["a", "b"], ["c"], ["d"]])
        for index in 0..<2 { give("\(index)", at: index, to: instead[0]) }
        instead[0].succeed()
        #expect(instead[1].fail(CRUDError(code, "")).isEmpty, "one read alone has failed")
        instead[2].succeed()
        #expect(results(first) == ["0 1", code.name])
        #expect(results(second) == ["-"])
    }

    @Test func otherFailuresConcernAllReads() {
        let reads = batch(Wanted(["a"], in: clients), Wanted(["b"], in: clients))
        #expect(CoalescedRead.all(of: [reads])[0].fail(CRUDError(.unavailable, "")).isEmpty)
        #expect(results(reads) == ["unavailable", "unavailable"])
    }
}
