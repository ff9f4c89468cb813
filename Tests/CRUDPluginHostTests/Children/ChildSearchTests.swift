import CRUDModel
import CRUDPluginABI
import CRUDTestSupport
import Testing

@testable import CRUDPluginHost

/// Searches that are executed next to the plugin, in a real `crudd-plugin-host`.
@Suite struct ChildSearchTests {
    private let test: TestChild
    private let collection: OpaquePointer

    init() throws {
        test = try TestChild(.memory)
        collection = try test.open()
        let changes = (0..<2000).map { TestChild.Change(id: "\(10_000 + $0)", item: #"{"n":\#($0)}"#) }
        _ = try test.write(changes, in: collection)
    }

    private func search(_ kind: ChildSearch.Kind, _ query: String, maximumBytes: Int = 1 << 20) -> ChildSearch {
        ChildSearch(
            kind, in: test.child.number(of: collection), query: Array(query.utf8), indexes: [],
            maximumBytes: maximumBytes, maximumItemBytes: 1 << 20, timeout: .seconds(5))
    }

    /// A slice and those that follow it: the results.
    private func results(_ first: ChildSearch.Slice) throws -> [String] {
        var slice = first
        var results: [String] = []
        while true {
            if let error = slice.error { throw error }
            if !slice.result.isEmpty { results.append(String(decoding: slice.result, as: UTF8.self)) }
            if slice.isDone { return results }
            slice = try test.child.continueSearch(slice.task)
        }
    }

    @Test func areExecuted() throws {
        #expect(test.child.canSearch)
        let few = #"{"filter":{"op":"<","args":[{"property":"n"},3]},"limit":10}"#
        let page = try #require(try results(try test.child.search(search(.query, few))).first)
        #expect(page.contains(#""10000""#) && page.contains(#""10002""#) && !page.contains(#""10003""#), "\(page)")
        #expect(try results(try test.child.search(search(.count, few))) == [#"{"count":3}"#])
    }

    @Test func matchesComeInBatches() throws {
        var first = try test.child.search(search(.matching, #"{"limit":1}"#))
        func text() -> String { String(decoding: first.result, as: UTF8.self) }
        // A slice may end before it has found a whole batch.
        while !text().contains(#"["10000","r"]"#) {
            try #require(!first.isDone)
            first = try test.child.continueSearch(first.task)
        }
        var again = try test.child.continueSearch(first.task, from: 0)
        while again.result != first.result, !again.isDone { again = try test.child.continueSearch(first.task) }
        #expect(again.result == first.result && !again.isDone)
        #expect(try results(test.child.continueSearch(first.task)).contains { $0.contains(#"["11999","r"]"#) })
    }

    /// A result that is longer than a frame should be comes in several.
    @Test func longResultsArriveWhole() throws {
        let item = #"{"text":"\#(String(repeating: "x", count: 100_000))"}"#
        _ = try test.write((0..<25).map { .init(id: "x\($0)", item: item) }, in: collection)
        let query = search(.query, #"{"prefix":"x","limit":100}"#, maximumBytes: 3 << 20)
        let page = try #require(try results(try test.child.search(query)).first)
        #expect(page.utf8.count > 2_500_000 && page.hasPrefix("{") && page.hasSuffix("}"))
    }

    @Test func whatCannotBeSearched() throws {
        let slice = try test.child.search(search(.query, #"{"filter":{"op":"no"},"limit":1}"#))
        #expect(slice.isDone && slice.error?.code.name == "invalid_query" && slice.error?.message.isEmpty == false)
        let failure = try #require(throws: PluginFailure.self) { try test.child.continueSearch(99) }
        #expect(failure.status == CRUDD_INTERNAL)
        test.child.endSearch(99)
        let first = try test.child.search(search(.matching, #"{"limit":1}"#))
        test.child.endSearch(first.task)
        #expect(throws: PluginFailure.self) { try test.child.continueSearch(first.task) }
        #expect(test.child.loss == nil)
    }

    @Test func otherChildrenDoNotSearch() throws {
        #expect(try !TestChild(.store).child.canSearch)
    }
}
