import CRUDJSON
import CRUDModel

/// Finds the tags of an XML document and the text between them: the part of XML 1.0 that property lists use.
///
/// Comments and processing instructions are skipped; CDATA sections and references are text. Only the five entities of
/// XML itself are known; a document type that declares others is refused, so that no entity can expand. The scanner
/// does not recurse, reads each byte once, and counts its work by the position.
struct XMLScanner {
    enum Token {
        /// `<name …>`, or `<name …/>`, which has no end tag.
        case start(Range<Int>, isEmpty: Bool)
        /// `</name>`.
        case end(Range<Int>)
        case endOfDocument
    }

    /// The text before the last token, references resolved and line ends as line feeds, in UTF-8.
    private(set) var characters: [UInt8] = []
    /// Whether that text is white space, or nothing.
    private(set) var isBlank = true
    private var position = 0
    private var isInProlog = true

    /// Skips what may precede the root: a byte order mark, the XML declaration.
    mutating func begin(_ document: Span<UInt8>, _ work: inout Work) throws(CRUDError) {
        work.begin(at: 0)
        if Self.matches("\u{FEFF}", document, at: 0) { position = 3 }
        guard Self.matches("<?xml", document, at: position) else { return }
        let start = position
        try skip(past: "?>", document, &work)
        let declaration = document.extracting(start..<min(position, start + Self.maximumDeclarationBytes))
        guard Self.isReadable(declaration) else { throw .corrupt("its XML is in another encoding than UTF-8") }
    }

    /// The next tag.
    mutating func next(_ document: Span<UInt8>, _ work: inout Work) throws(CRUDError) -> Token {
        characters.removeAll(keepingCapacity: true)
        isBlank = true
        work.begin(at: position)
        defer { work.end(at: position) }
        while position < document.count {
            guard work.passes(position) else { throw stopped() }
            switch document[position] {
            case UInt8(ascii: "<"):
                if let token = try markup(document, &work) { return token }
            case UInt8(ascii: "&"):
                isBlank = false
                try reference(document, &work)
            case 0x09, 0x0A, 0x20: copyByte(document)
            case 0x21...0x7E:
                isBlank = false
                copyByte(document)
            default:
                isBlank = isBlank && document[position] == UInt8(ascii: "\r")
                try character(document)
            }
        }
        return .endOfDocument
    }

    // MARK: Markup

    /// A tag or other markup; nil if it is not a tag.
    private mutating func markup(_ document: Span<UInt8>, _ work: inout Work) throws(CRUDError) -> Token? {
        position += 1
        switch try peek(document) {
        case UInt8(ascii: "/"):
            position += 1
            let name = try name(document, &work)
            skipWhiteSpace(document, &work)
            try expect(UInt8(ascii: ">"), document)
            return .end(name)
        case UInt8(ascii: "?"): try skip(past: "?>", document, &work)
        case UInt8(ascii: "!"): try declaration(document, &work)
        default: return try startTag(document, &work)
        }
        return nil
    }

    /// What begins with `<!`, of which the `!` is next.
    private mutating func declaration(_ document: Span<UInt8>, _ work: inout Work) throws(CRUDError) {
        if Self.matches("!--", document, at: position) {
            position += 3
            try skip(past: "-->", document, &work)
        } else if Self.matches("![CDATA[", document, at: position) {
            position += 8
            isBlank = false
            while !Self.matches("]]>", document, at: position) {
                guard work.passes(position) else { throw stopped() }
                try character(document)
            }
            position += 3
        } else if isInProlog, Self.matches("!DOCTYPE", document, at: position) {
            try skipDocumentType(document, &work)
        } else {
            throw error("a misplaced declaration")
        }
    }

    private mutating func startTag(_ document: Span<UInt8>, _ work: inout Work) throws(CRUDError) -> Token {
        isInProlog = false
        let name = try name(document, &work)
        while true {
            guard work.passes(position) else { throw stopped() }
            skipWhiteSpace(document, &work)
            switch try peek(document) {
            case UInt8(ascii: ">"):
                position += 1
                return .start(name, isEmpty: false)
            case UInt8(ascii: "/"):
                position += 1
                try expect(UInt8(ascii: ">"), document)
                return .start(name, isEmpty: true)
            default: try skipAttribute(document, &work)
            }
        }
    }

    /// `name="value"`; no attribute of a property list means anything.
    private mutating func skipAttribute(_ document: Span<UInt8>, _ work: inout Work) throws(CRUDError) {
        _ = try name(document, &work)
        skipWhiteSpace(document, &work)
        try expect(UInt8(ascii: "="), document)
        skipWhiteSpace(document, &work)
        try skipQuoted(document, &work)
    }

    private mutating func skipQuoted(_ document: Span<UInt8>, _ work: inout Work) throws(CRUDError) {
        let quote = try peek(document)
        guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
            throw error("a quotation mark is missing")
        }
        repeat {
            guard work.passes(position) else { throw stopped() }
            position += 1
        } while try peek(document) != quote
        position += 1
    }

    private mutating func skipDocumentType(_ document: Span<UInt8>, _ work: inout Work) throws(CRUDError) {
        position += 8
        while true {
            guard work.passes(position) else { throw stopped() }
            switch try peek(document) {
            case UInt8(ascii: ">"):
                position += 1
                return
            case UInt8(ascii: "["): throw error("a document type with its own declarations")
            case UInt8(ascii: "\""), UInt8(ascii: "'"): try skipQuoted(document, &work)
            default: position += 1
            }
        }
    }

    private mutating func name(_ document: Span<UInt8>, _ work: inout Work) throws(CRUDError) -> Range<Int> {
        let start = position
        scan: while true {
            guard work.passes(position) else { throw stopped() }
            switch try peek(document) {
            case 0x09, 0x0A, 0x0D, 0x20, UInt8(ascii: ">"), UInt8(ascii: "/"), UInt8(ascii: "="), UInt8(ascii: "<"),
                UInt8(ascii: "\""), UInt8(ascii: "'"):
                break scan
            default: position += 1
            }
        }
        guard position > start else { throw error("a name is missing") }
        return start..<position
    }

    // MARK: Text

    private mutating func copyByte(_ document: Span<UInt8>) {
        characters.append(document[position])
        position += 1
    }

    /// One character of any kind.
    private mutating func character(_ document: Span<UInt8>) throws(CRUDError) {
        guard position < document.count else { throw error("it ends too early") }
        let length = wellFormedScalarLength(document, at: position)
        guard length > 0 else { throw error("invalid UTF-8") }
        guard !XMLCharacter.isForbidden(document, at: position) else { throw error("a character that XML forbids") }
        if document[position] == UInt8(ascii: "\r") {
            // https://www.w3.org/TR/xml/#sec-line-ends
            if !Self.matches("\r\n", document, at: position) { characters.append(UInt8(ascii: "\n")) }
        } else {
            for index in position..<position + length { characters.append(document[index]) }
        }
        position += length
    }

    /// `&amp;`, `&#38;` or `&#x26;`.
    private mutating func reference(_ document: Span<UInt8>, _ work: inout Work) throws(CRUDError) {
        for (entity, character) in Self.entities where Self.matches(entity, document, at: position) {
            characters.append(character)
            position += entity.utf8CodeUnitCount
            return
        }
        guard Self.matches("&#", document, at: position) else { throw error("an entity that XML does not define") }
        position += 2
        let isHexadecimal = Self.matches("x", document, at: position)
        if isHexadecimal { position += 1 }
        var code: UInt32 = 0
        var digits = 0
        while let digit = hexDigit(try peek(document)), isHexadecimal || digit < 10 {
            guard work.passes(position) else { throw stopped() }
            code = min(code * (isHexadecimal ? 16 : 10) + UInt32(digit), 0x110000)
            digits += 1
            position += 1
        }
        guard digits > 0 else { throw error("a character reference without digits") }
        try expect(UInt8(ascii: ";"), document)
        guard XMLCharacter.isAllowed(code), let scalar = Unicode.Scalar(code) else {
            throw error("a reference to a character that XML forbids")
        }
        characters.append(contentsOf: scalar.utf8)
    }

    /// Of a declaration no more is looked at.
    private static let maximumDeclarationBytes = 1024

    private static let entities: [(StaticString, UInt8)] = [
        ("&amp;", UInt8(ascii: "&")), ("&lt;", UInt8(ascii: "<")), ("&gt;", UInt8(ascii: ">")),
        ("&quot;", UInt8(ascii: "\"")), ("&apos;", UInt8(ascii: "'")),
    ]

    // MARK: Steps

    private func error(_ reason: String) -> CRUDError {
        .corrupt("\(reason), at byte \(position) of its XML")
    }

    /// Of work that has been stopped.
    private func stopped() -> CRUDError { error("stopped") }

    private func peek(_ document: Span<UInt8>) throws(CRUDError) -> UInt8 {
        guard position < document.count else { throw error("it ends too early") }
        return document[position]
    }

    private mutating func expect(_ byte: UInt8, _ document: Span<UInt8>) throws(CRUDError) {
        guard try peek(document) == byte else { throw error("\(Character(Unicode.Scalar(byte))) is missing") }
        position += 1
    }

    private mutating func skipWhiteSpace(_ document: Span<UInt8>, _ work: inout Work) {
        while position < document.count, XMLCharacter.isWhiteSpace(document[position]), work.passes(position) {
            position += 1
        }
    }

    private mutating func skip(past end: StaticString, _ document: Span<UInt8>, _ work: inout Work) throws(CRUDError) {
        while !Self.matches(end, document, at: position) {
            guard position < document.count else { throw error("it ends too early") }
            guard work.passes(position) else { throw stopped() }
            position += 1
        }
        position += end.utf8CodeUnitCount
    }

    private static func matches(_ literal: StaticString, _ document: Span<UInt8>, at start: Int) -> Bool {
        let size = literal.utf8CodeUnitCount
        guard size <= document.count - start else { return false }
        // A StaticString's bytes outlive everything, and the index is below their count.
        for index in 0..<size where document[start + index] != (unsafe literal.utf8Start[index]) { return false }
        return true
    }

    /// Whether an XML declaration names an encoding that is, or is part of, UTF-8, or none.
    private static func isReadable(_ declaration: Span<UInt8>) -> Bool {
        var text: [UInt8] = []
        for index in declaration.indices { text.append(declaration[index]) }
        let words = String(decoding: text, as: UTF8.self).lowercased().split { " \t\r\n=\"'?".contains($0) }
        guard let place = words.firstIndex(of: "encoding"), place + 1 < words.count else { return true }
        return ["utf-8", "utf8", "us-ascii", "ascii"].contains(words[place + 1])
    }
}
