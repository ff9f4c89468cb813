import CRUDModel
import CRUDTestSupport
import Testing

@testable import CRUDPluginHost

/// How reads become calls, and what the calls' outcomes are to them.
@Suite struct LookupTests {
    private let clients = collection("clients")
    private let orders = collection("orders")

    /// A batch with these reads, ready to be carried out.
    private func batch(_ reads: Asked...) -> ReadBatch {
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

    private struct Asked {
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

    private func texts(_ lookups: [Lookup]) -> [[String]] {
        lookups.map { $0.ids.map { String(decoding: $0.buffer, as: UTF8.self) } }
    }

    /// What a batch's reads came to: items, `-` where there is none, or what went wrong.
    private func results(_ batch: ReadBatch) -> [String] {
        batch.results.map { result in
            switch result {
            case .records(let records):
                records.map { record in
                    record.map { String(decoding: batch.found.bytes($0.item), as: UTF8.self) } ?? "-"
                }.joined(separator: " ")
            case .count(let count): "\(count)"
            case .tooLong: "too long"
            case .failed(let error): error.code.name
            }
        }
    }

    /// Gives a lookup a record; answers whether it wants another one.
    @discardableResult
    private func give(_ item: String, at index: Int, to lookup: Lookup) -> Bool {
        Array(item.utf8).withUnsafeBytes { item in
            lookup.receive(index: index, item: item, revision: UnsafeRawBufferPointer(rebasing: item.prefix(0)))
        }
    }

    @Test func neighboursThatAskTheSameGoTogether() {
        let first = batch(Asked(["a", "b"], in: clients), Asked([], in: clients), Asked(["c"], in: clients))
        let second = batch(
            Asked(["d"], in: clients), Asked(["e"], in: clients, withItems: false), Asked(["f"], in: orders),
            Asked(["g"], in: clients))
        let lookups = Lookup.all(of: [first, second])
        #expect(texts(lookups) == [["a", "b", "c", "d"], ["e"], ["f"], ["g"]])
        #expect(lookups.map { $0.collection === clients } == [true, true, false, true])
        #expect(lookups.map(\.withItems) == [true, false, true, true])
    }

    @Test func whatIsRefusedIsNotAskedFor() {
        let asked = batch(Asked(["a"], in: clients), Asked(["b"], in: orders), Asked(["c"], in: clients))
        asked.refusals[1] = CRUDError(.limitExceeded, "")
        asked.prepareResults()
        let lookups = Lookup.all(of: [asked])
        #expect(texts(lookups) == [["a", "c"]])
        give("1", at: 1, to: lookups[0])
        lookups[0].succeed()
        #expect(results(asked) == ["-", "limit_exceeded", "1"])
    }

    @Test(arguments: [
        ([1000], [1000]), ([999, 1], [1000]), ([1000, 1], [1000, 1]), ([400, 400, 400], [800, 400]),
        ([1, 1000, 1], [1, 1000, 1]), ([2000, 1], [2000, 1]),
    ])
    func aCallAsksForNoMoreThanAThousand(reads: [Int], calls: [Int]) {
        let batches = reads.map { batch(Asked((0..<$0).map { "\($0)" }, in: clients)) }
        #expect(Lookup.all(of: batches).map(\.ids.count) == calls)
    }

    /// Plugins emit in the order of the ids, or in another one.
    @Test(arguments: [[0, 1, 3, 4, 5], [5, 4, 3, 1, 0], [3, 0, 5, 1, 4]])
    func eachReadGetsItsOwn(order: [Int]) {
        let first = batch(Asked(["a", "b"], in: clients), Asked([], in: clients), Asked(["x"], in: clients))
        let second = batch(Asked(["c", "d", "a"], in: clients))
        let lookup = Lookup.all(of: [first, second])[0]
        for index in order { #expect(give("\(index)", at: index, to: lookup)) }
        #expect(give("beyond", at: 6, to: lookup) && give("before", at: -1, to: lookup))
        lookup.succeed()
        #expect(results(first) == ["0 1", "", "-"])
        #expect(results(second) == ["3 4 5"])
    }

    @Test func whatIsTooLongIsNotKept() {
        let alone = batch(Asked(["a", "b"], in: clients, maximumBytes: 3))
        var lookup = Lookup.all(of: [alone])[0]
        #expect(give("12", at: 0, to: lookup))
        #expect(!give("34", at: 1, to: lookup), "nobody wants another one")
        lookup.succeed()
        #expect(results(alone) == ["too long"])

        let beside = batch(Asked(["a", "b"], in: clients, maximumBytes: 1), Asked(["c"], in: clients))
        lookup = Lookup.all(of: [beside])[0]
        for index in 0..<3 { #expect(give("12", at: index, to: lookup), "others do") }
        lookup.succeed()
        #expect(results(beside) == ["too long", "12"])
        #expect(beside.found.count == 2)
    }

    /// What may be the fault of one read is tried again one by one.
    @Test(arguments: [.corrupt, .internalError, .unsupported] as [CRUDError.Code])
    func oneReadsFaultIsNotTheOthers(code: CRUDError.Code) {
        let first = batch(Asked(["a", "b"], in: clients), Asked(["c"], in: clients))
        let second = batch(Asked(["d"], in: clients))
        let lookup = Lookup.all(of: [first, second])[0]
        give("lost", at: 0, to: lookup)
        let instead = lookup.fail(CRUDError(code, ""))
        #expect(texts(instead) == [["a", "b"], ["c"], ["d"]])
        for index in 0..<2 { give("\(index)", at: index, to: instead[0]) }
        instead[0].succeed()
        #expect(instead[1].fail(CRUDError(code, "")).isEmpty, "one read alone has failed")
        instead[2].succeed()
        #expect(results(first) == ["0 1", code.name])
        #expect(results(second) == ["-"])
    }

    @Test func whatIsNobodysFaultIsEverybodysFailure() {
        let asked = batch(Asked(["a"], in: clients), Asked(["b"], in: clients))
        #expect(Lookup.all(of: [asked])[0].fail(CRUDError(.unavailable, "")).isEmpty)
        #expect(results(asked) == ["unavailable", "unavailable"])
    }
}
