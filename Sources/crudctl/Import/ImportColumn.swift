import CRUDJSON
import CRUDModel

/// A column of a table that is imported: a member of each item.
struct ImportColumn {
    /// What its fields are.
    enum Kind: String, CaseIterable {
        case string, integer, number, boolean, json
    }

    let name: String
    let kind: Kind
    /// The name as a JSON string.
    let key: [UInt8]

    private static let longestExcerpt = 40
    private static let integerBytes = Array("-0123456789".utf8)

    init(name: String, kind: Kind) {
        self.name = name
        self.kind = kind
        var key: [UInt8] = []
        key.appendJSONString(name.utf8)
        self.key = key
    }

    /// Appends the member of a field to an item, with a comma before it unless it is the first.
    ///
    /// An empty field is a value that is missing: the item gets no member.
    ///
    /// - Returns: why the field is not of the column's kind, as the end of a sentence; nil: it is.
    func append(_ field: CSVReader.Field, to item: inout [UInt8]) -> String? {
        if field.bytes.isEmpty, !field.isQuoted { return nil }
        let value: [UInt8]
        switch kind {
        case .string:
            var text: [UInt8] = []
            text.appendJSONString(field.bytes)
            value = text
        case .integer, .number, .boolean, .json:
            guard isValid(field.bytes) else { return "\(Self.excerpt(field.bytes)) is not \(noun)" }
            value = field.bytes
        }
        if item.last != UInt8(ascii: "{") { item.append(UInt8(ascii: ",")) }
        item += key
        item.append(UInt8(ascii: ":"))
        // A line end in valid JSON text is insignificant white space, and so is a space in its place.
        item += value.map { $0 == UInt8(ascii: "\n") ? UInt8(ascii: " ") : $0 }
        return nil
    }

    private func isValid(_ text: [UInt8]) -> Bool {
        var scanner = JSONScanner()
        guard let value = try? scanner.document(text.span) else { return false }
        // Without white space around it, which JSON allows.
        let isBare = value.range == text.indices
        return switch kind {
        case .string, .json: true
        case .boolean: isBare && (text == Array("true".utf8) || text == Array("false".utf8))
        case .number: isBare && value.kind == .number
        case .integer: isBare && value.kind == .number && text.allSatisfy { Self.integerBytes.contains($0) }
        }
    }

    private var noun: String {
        switch kind {
        case .string: "text"
        case .integer: "an integer"
        case .number: "a number"
        case .boolean: "true or false"
        case .json: "JSON"
        }
    }

    private static func excerpt(_ bytes: [UInt8]) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        return quoted((text.count > longestExcerpt ? text.prefix(longestExcerpt) + "…" : text[...]).utf8)
    }
}
