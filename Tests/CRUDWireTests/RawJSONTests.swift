import CRUDModel
import CRUDWire
import Testing

@Suite struct RawJSONTests {
    @Test(arguments: ["{}", " [1, 2]\n", "1e400", "\"é\"", "null"])
    func acceptsOneValue(_ text: String) throws {
        try RawJSON.check(Array(text.utf8), what: "it")
    }

    /// Text that would add members to the request that it is put into, and other text that is not a single value.
    @Test(arguments: [
        (#"1,"id":"other""#, "line 1, column 2"), ("{}}", "line 1, column 3"), ("", "line 1, column 1"),
        ("[1,\n 2,\n é]", "line 3, column 2"), ("\"é\" x", "line 1, column 5"), ("01", "line 1, column 2"),
    ])
    func saysWhereItGoesWrong(_ text: String, _ place: String) {
        let error = #expect(throws: CRUDError.self) { try RawJSON.check(Array(text.utf8), what: "it") }
        #expect(error?.code == .parseError)
        #expect(error?.message.hasPrefix("it is not valid JSON: ") == true)
        #expect(error?.message.hasSuffix(" at " + place) == true)
    }
}
