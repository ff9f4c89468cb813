import CRUDModel
import CRUDPluginCalls
import CRUDQuery
import Testing

@testable import CRUDStorage

/// The records that one slice of a search sees.
@Suite struct PluginRecordSourceTests {
    /// A record that moves from a range that has not been scanned into one that has must be found.
    @Test func allCallsOfASliceSeeOneSnapshot() throws {
        let moved = try MovedBackends()
        let (main, collection) = (moved.backends[0], moved.collection())
        try main.write([.put("a", "1"), .put("b", "2")], in: collection)
        let reader = try #require(main.reader(forLoop: 0))
        func texts(_ source: PluginRecordSource, _ prefix: String) throws -> [String] {
            let visitor = TextVisitor()
            try source.scan(RecordScan(idPrefix: Array(prefix.utf8)), into: visitor)
            return visitor.texts
        }
        let slice = PluginRecordSource(reader, collection) { false }
        #expect(try texts(slice, "a") == ["1@r"])
        try main.write([.put("a", "3"), .put("b", "4"), .put("c", "5")], in: collection)
        #expect(try texts(slice, "b") == ["2@r"])
        #expect(try slice.count(RecordScan(.id), limit: 0) == 2)
        let next = PluginRecordSource(reader, collection) { false }
        #expect(try texts(next, "") == ["3@r", "4@r", "5@r"])
        reader.releaseSnapshot()
    }
}
