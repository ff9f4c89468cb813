import CRUDJSON
import Testing

@testable import crudctl

@Suite struct YAMLWriterTests {
    private func yaml(_ json: String) throws -> String {
        var text: [UInt8] = []
        let output = OutputBuffer { text += $0 }
        let bytes = Array(json.utf8)
        var scanner = JSONScanner()
        try YAMLWriter(output: output).write(scanner.document(bytes.span), bytes.span)
        try output.end()
        return String(decoding: text, as: UTF8.self)
    }

    private func quoted(_ string: String) -> String {
        var bytes: [UInt8] = []
        bytes.appendJSONString(string.utf8)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func writesBlockStyle() throws {
        #expect(
            try yaml(#"{"a":1e400,"b":{"c":[true,null,[1,2],{"d":"x","e":[]}],"f":{}},"g":"two words"}"#) == """
                a: 1e400
                b:
                  c:
                    - true
                    - null
                    - - 1
                      - 2
                    - d: x
                      e: []
                  f: {}
                g: two words

                """)
        #expect(try yaml("17") == "17\n")
        #expect(try yaml("[]") == "[]\n")
    }

    @Test(arguments: [
        "", "null", "Null", "~", "true", "No", "y", "1", "-1", "0x1F", "1e3", ".inf", "-", "--- x", "a: b", "a #b",
        "#", "a ", " a", "[a]", "{a}", "&a", "*a", "!a", "|", ">", "'a'", "\"a\"", "%a", "@a", "`a`", "a\nb", "é",
        "a,b", "2026-01-01", "?", "a\u{85}b", "\u{FEFF}a", "😀", "\\", "\u{0}", "=", "<<", "a\u{202E}b", "\u{E0041}",
    ])
    func quotesWhatIsNotPlain(_ string: String) throws {
        let text = try yaml(quoted(string))
        #expect(text.hasPrefix("\""))
        #expect(text.hasSuffix("\"\n"))
        #expect(
            text.unicodeScalars.allSatisfy { $0.value == 0x0A || (0x20..<0x7F).contains($0.value) || $0.value > 0x9F })
    }

    @Test(arguments: ["a", "clients", "Clients Database", "a.b/c@d+e_f-g", "nullable", "x86-64"])
    func leavesPlainWhatIsPlain(_ string: String) throws {
        #expect(try yaml(quoted(string)) == string + "\n")
    }

    @Test func writesLongKeysExplicitly() throws {
        let key = String(repeating: "k", count: 1025)
        #expect(try yaml("{\"\(key)\":1}") == "? \(key)\n: 1\n")
        #expect(try yaml("{\"\(key)\":[1]}") == "? \(key)\n:\n  - 1\n")
    }

    @Test func survivesDeepNesting() throws {
        let depth = 1000
        let deep = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        #expect(try yaml(deep) == String(repeating: "- ", count: depth - 1) + "[]\n")
        let deeper = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
        #expect(try yaml(deeper) == deeper + "\n")
    }
}
