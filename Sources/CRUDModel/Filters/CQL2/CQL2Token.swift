/// The keywords of CQL2's text encoding; as names of properties they must be quoted.
enum CQL2Keyword: String {
    case and, or, not, like, between, `in`, `is`, null, `true`, `false`

    /// The keyword with this text, regardless of case.
    init?(_ word: some StringProtocol) {
        self.init(rawValue: String(decoding: word.utf8.map { Self.lowercased($0) }, as: UTF8.self))
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
    }
}

/// The identifiers of the standard's annex B, which are those of XML names with dots.
enum CQL2Identifier {
    static func isIdentifier(_ text: String) -> Bool {
        guard let first = text.unicodeScalars.first, isStart(first) else { return false }
        return text.unicodeScalars.dropFirst().allSatisfy(isPart)
    }

    static func isStart(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.properties.isWhitespace { return false }
        return switch scalar.value {
        case 0x3A, 0x5F, 0x41...0x5A, 0x61...0x7A, 0xC0...0xD6, 0xD8...0xF6, 0xF8...0x2FF, 0x370...0x37D,
            0x37F...0x1FFE, 0x200C...0x200D, 0x2070...0x218F, 0x2C00...0x2FEF, 0x3001...0xD7FF, 0xF900...0xFDCF,
            0xFDF0...0xFFFD, 0x10000...0xEFFFF:
            true
        default: false
        }
    }

    static func isPart(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x2E, 0x30...0x39, 0x300...0x36F, 0x203F...0x2040: true
        default: isStart(scalar)
        }
    }
}

/// A token of CQL2's text encoding.
enum CQL2Token {
    case keyword(CQL2Keyword)
    /// A property, or the name of a function.
    case identifier(String)
    /// A name in double quotes: always a property.
    case quotedIdentifier(String)
    case string(String)
    case number(JSONNumber)
    case comparison(Comparison)
    case leftParenthesis, rightParenthesis, leftBracket, rightBracket, comma
    case end
}
