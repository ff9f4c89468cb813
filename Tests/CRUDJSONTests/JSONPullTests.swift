import CRUDJSON
import Testing

/// Objects and arrays, entered and read member by member.
@Suite struct JSONPullTests {
    /// The members of an object; each as key, value.
    private func members(_ text: String) throws -> [[String]] {
        let bytes = Array(text.utf8)
        var scanner = JSONScanner()
        guard try scanner.peekKind(bytes.span) == .object else { return [] }
        scanner.enter()
        var isFirst = true
        var members: [[String]] = []
        while let key = try scanner.nextKey(bytes.span, isFirst: &isFirst) {
            let value = try scanner.value(bytes.span)
            members.append([bytes[key.content], bytes[value.range]].map { String(decoding: $0, as: UTF8.self) })
        }
        return scanner.isAtEnd(bytes.span) ? members : []
    }

    /// The elements of an array.
    private func elements(_ text: String) throws -> [String] {
        let bytes = Array(text.utf8)
        var scanner = JSONScanner()
        guard try scanner.peekKind(bytes.span) == .array else { return [] }
        scanner.enter()
        var isFirst = true
        var elements: [String] = []
        while try scanner.nextElement(bytes.span, isFirst: &isFirst) {
            elements.append(String(decoding: bytes[try scanner.value(bytes.span).range], as: UTF8.self))
        }
        return scanner.isAtEnd(bytes.span) ? elements : []
    }

    @Test func returnsMembersInOrder() throws {
        #expect(try members("{}") == [])
        #expect(try members(" {\n} ") == [])
        #expect(
            try members(#"{ "a" : 1 ,"":{"x":[]}, "a":"b", "\"}":null}"#)
                == [["a", "1"], ["", #"{"x":[]}"#], ["a", #""b""#], [#"\"}"#, "null"]])
    }

    @Test func returnsElementsInOrder() throws {
        #expect(try elements("[]") == [])
        #expect(try elements(" [\t] ") == [])
        #expect(
            try elements(#"[ 1 ,[2,[]] , "]", {"a":[3]},null ]"#) == ["1", "[2,[]]", #""]""#, #"{"a":[3]}"#, "null"])
    }

    @Test(arguments: [
        "{", "{,}", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{\"a\":1 \"b\":2}", "{1:2}",
        "{\"a\",1}",
        "{]", "{\"a\":1]", "{\"a\":1,,\"b\":2}", "{,\"a\":1}",
    ])
    func rejectsInvalidObjects(text: String) {
        #expect(throws: JSONSyntaxError.self) { try members(text) }
    }

    @Test(arguments: ["[", "[,]", "[1", "[1,", "[1,]", "[1 2]", "[}", "[1}", "[1,,2]", "[,1]", "[1:2]"])
    func rejectsInvalidArrays(text: String) {
        #expect(throws: JSONSyntaxError.self) { try elements(text) }
    }

    @Test func startsAtAGivenPosition() throws {
        let text = Array(#"[1,{"a":[true]},"x"]"#.utf8)
        var scanner = JSONScanner(at: 3)
        let object = try scanner.value(text.span)
        let end = scanner.position
        scanner.reset(at: 16)
        let string = try scanner.value(text.span)
        let isAtEnd = scanner.isAtEnd(text.span)
        scanner.reset()
        let whole = try scanner.value(text.span)
        let isAtLast = scanner.isAtEnd(text.span)
        #expect(object == JSONSlice(start: 3, end: 15, kind: .object, depth: 2))
        #expect(end == 15)
        #expect(string == JSONSlice(start: 16, end: 19, kind: .string))
        #expect(!isAtEnd)
        #expect(whole == JSONSlice(start: 0, end: 20, kind: .array, depth: 3))
        #expect(isAtLast)
    }

    @Test(
        arguments: [
            ("{}", .object), ("[]", .array), ("\"\"", .string), ("0", .number), ("-1", .number), ("9", .number),
            ("true", .true), ("false", .false), ("null", .null), (" \t\r\n1", .number),
        ] as [(String, JSONKind)])
    func knowsAKindByItsFirstByte(text: String, kind: JSONKind) throws {
        let bytes = Array(text.utf8)
        var scanner = JSONScanner()
        let peeked = try scanner.peekKind(bytes.span)
        let value = try scanner.value(bytes.span)
        #expect(peeked == kind && value.kind == kind)
    }
}
