import CRUDJSON
import Testing

import struct CRUDTestSupport.SeededGenerator

/// Random documents with random white space and escapes are accepted, their parts are found where they are, and
/// Foundation agrees about them and about damaged ones.
@Suite struct JSONDocumentTests {
    /// The text of a value, and what the scanner should return for it.
    private struct Document {
        var text: [UInt8]
        var kind: JSONKind
        var depth = 0
        /// The values of members or elements.
        var children: [Document] = []
        /// The value of a string.
        var value: [UInt8] = []
    }

    private struct Author {
        var random: SeededGenerator

        mutating func document(depth: Int) -> Document {
            switch Int.random(in: 0..<(depth == 0 ? 6 : 10), using: &random) {
            case 0: return Document(text: Array("null".utf8), kind: .null)
            case 1: return Document(text: Array("true".utf8), kind: .true)
            case 2: return Document(text: Array("false".utf8), kind: .false)
            case 3: return Document(text: number(), kind: .number)
            case 4, 5:
                let (text, value) = string()
                return Document(text: text, kind: .string, value: value)
            case 6, 7: return container("[", "]", .array, depth)
            default: return container("{", "}", .object, depth)
            }
        }

        private mutating func container(_ open: String, _ close: String, _ kind: JSONKind, _ depth: Int) -> Document {
            var document = Document(text: Array(open.utf8), kind: kind, depth: 1)
            for index in 0..<Int.random(in: 0..<5, using: &random) {
                if index > 0 { document.text.append(UInt8(ascii: ",")) }
                if kind == .object { document.text += space() + string().text + space() + [UInt8(ascii: ":")] }
                let child = self.document(depth: depth - 1)
                document.text += space() + child.text
                document.depth = max(document.depth, child.depth + 1)
                document.children.append(child)
                document.text += space()
            }
            if document.children.isEmpty { document.text += space() }
            document.text += close.utf8
            return document
        }

        mutating func space() -> [UInt8] {
            (0..<max(0, Int.random(in: -6..<3, using: &random))).map { _ in
                [0x20, 0x09, 0x0A, 0x0D].randomElement(using: &random) ?? 0x20
            }
        }

        private mutating func number() -> [UInt8] {
            func digits(_ count: Int) -> String {
                String((0..<count).map { _ in "0123456789".randomElement(using: &random) ?? "0" })
            }
            var text = Bool.random(using: &random) ? "-" : ""
            text += Bool.random(using: &random) ? "0" : String(Int.random(in: 1...99_999, using: &random))
            if Bool.random(using: &random) { text += "." + digits(Int.random(in: 1...5, using: &random)) }
            // Foundation rejects numbers outside the range of binary64, RFC 8259 does not.
            if Bool.random(using: &random) {
                text += ["e", "E", "e+", "e-"].randomElement(using: &random) ?? "e"
                text += digits(Int.random(in: 1...2, using: &random))
            }
            return Array(text.utf8)
        }

        private mutating func string() -> (text: [UInt8], value: [UInt8]) {
            var text: [UInt8] = [0x22]
            var value: [UInt8] = []
            for _ in 0..<Int.random(in: 0..<24, using: &random) {
                let scalar: Unicode.Scalar =
                    switch Int.random(in: 0..<8, using: &random) {
                    case 0: Unicode.Scalar(UInt8.random(in: 0..<0x20, using: &random))
                    case 1: ["\"", "\\", "/", "\u{7F}"].randomElement(using: &random) ?? "/"
                    case 2:
                        ["é", "ÿ", "߿", "ࠀ", "€", "\u{D7FF}", "\u{E000}", "\u{FFFF}"].randomElement(using: &random)
                            ?? "é"
                    case 3: ["😀", "\u{10000}", "\u{10FFFF}"].randomElement(using: &random) ?? "😀"
                    default: Unicode.Scalar(UInt8.random(in: 0x23..<0x5C, using: &random))
                    }
                value += Array(String(scalar).utf8)
                text += spelling(of: scalar)
            }
            return (text + [0x22], value)
        }

        private mutating func spelling(of scalar: Unicode.Scalar) -> [UInt8] {
            let short: [Unicode.Scalar: String] = [
                "\"": "\\\"", "\\": "\\\\", "/": "\\/", "\u{8}": "\\b", "\u{C}": "\\f", "\n": "\\n", "\r": "\\r",
                "\t": "\\t",
            ]
            let mayBePlain = scalar.value >= 0x20 && scalar != "\"" && scalar != "\\"
            if mayBePlain, Int.random(in: 0..<4, using: &random) > 0 { return Array(String(scalar).utf8) }
            if let short = short[scalar], Bool.random(using: &random) { return Array(short.utf8) }
            return String(scalar).utf16.flatMap { unit in
                let digits = String(unit, radix: 16, uppercase: Bool.random(using: &random))
                return Array(("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8)
            }
        }
    }

    /// Compares a scanned value, and all within it, with the document.
    private func compare(_ slice: JSONSlice, _ text: [UInt8], with document: Document) throws {
        #expect(slice.kind == document.kind && slice.depth == document.depth)
        #expect(Array(text[slice.range]) == document.text)
        if slice.kind == .string { #expect(slice.decodedString(text.span) == document.value) }
        guard slice.kind == .object || slice.kind == .array else { return }
        var scanner = JSONScanner(at: slice.start)
        scanner.enter()
        var isFirst = true
        for child in document.children {
            if slice.kind == .object {
                let key = try scanner.nextKey(text.span, isFirst: &isFirst)
                #expect(key != nil)
            } else {
                let isThere = try scanner.nextElement(text.span, isFirst: &isFirst)
                #expect(isThere)
            }
            let value = try scanner.value(text.span)
            try compare(value, text, with: child)
        }
    }

    private func isJSON(_ text: [UInt8]) -> Bool {
        var scanner = JSONScanner()
        return (try? scanner.value(text.span)) != nil && scanner.isAtEnd(text.span)
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func documentsAreScanned(seed: UInt64) throws {
        var author = Author(random: SeededGenerator(seed: seed))
        for _ in 0..<100 {
            let document = author.document(depth: 5)
            let before = author.space()
            let text = before + document.text + author.space()
            var scanner = JSONScanner()
            let value = try scanner.value(text.span)
            let isAtEnd = scanner.isAtEnd(text.span)
            #expect(isAtEnd)
            try compare(value, text, with: document)
        }
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func foundationAgreesAboutDamage(seed: UInt64) {
        var author = Author(random: SeededGenerator(seed: seed << 8))
        let alphabet =
            Array("{}[]:,\"\\/bfnrtu019eE+-.dDcC \n\t".utf8) + [0x1F, 0x7F, 0x80, 0xBF, 0xC3, 0xE2, 0xED, 0xF0]
        for _ in 0..<100 {
            let original = author.document(depth: 4).text
            for _ in 0..<10 {
                var text = original
                let index = Int.random(in: text.indices, using: &author.random)
                let byte = alphabet.randomElement(using: &author.random) ?? 0x20
                switch Int.random(in: 0..<4, using: &author.random) {
                case 0: text[index] = byte
                case 1: text.remove(at: index)
                case 2: text.insert(byte, at: index)
                default: text.removeSubrange(index...)
                }
                guard let foundation = FoundationJSON.accepts(text), isJSON(text) != foundation else { continue }
                Issue.record("Foundation says \(foundation): \(String(decoding: text, as: UTF8.self)) \(text)")
            }
        }
    }
}
