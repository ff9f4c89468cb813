import CRUDJSON
import CRUDModel

/// Writes the values of a stored property list as an item's JSON text, within bounds.
struct ItemWriter: PropertyListSink {
    var bytes: [UInt8] = []
    private let maximumBytes: Int
    private var depth = 0
    /// How deep stored arrays and dictionaries may nest: the greatest value of `json_depth`.
    private static let maximumDepth = 1000
    private var needsComma = false

    init(maximumBytes: Int) {
        self.maximumBytes = maximumBytes
    }

    mutating func beginDictionary() throws(CRUDError) { try open(UInt8(ascii: "{")) }

    mutating func endDictionary() { close(UInt8(ascii: "}")) }

    mutating func beginArray() throws(CRUDError) { try open(UInt8(ascii: "[")) }

    mutating func endArray() { close(UInt8(ascii: "]")) }

    mutating func key(_ name: Span<UInt8>, _ work: inout Work) throws(CRUDError) {
        try string(name, &work)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    mutating func string(_ value: Span<UInt8>, _ work: inout Work) throws(CRUDError) {
        try separate(count: value.count + 2)
        bytes.appendJSONString(value, &work)
    }

    mutating func integer(_ value: Int128) throws(CRUDError) {
        try separate(count: 1)
        bytes.append(decimal: value)
    }

    mutating func real(_ value: Double) throws(CRUDError) {
        guard value.isFinite else { throw .corrupt("JSON cannot represent \(value)") }
        try separate(count: 1)
        bytes.append(contentsOf: value.description.utf8)
    }

    mutating func boolean(_ value: Bool) throws(CRUDError) {
        try separate(count: 4)
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
    }

    mutating func null() throws(CRUDError) {
        try separate(count: 4)
        bytes.append(contentsOf: "null".utf8)
    }

    /// An item that is stored as JSON text.
    mutating func text(_ stored: Span<UInt8>, _ work: inout Work) throws(CRUDError) {
        do throws(JSONSyntaxError) {
            var scanner = JSONScanner()
            try scanner.document(stored, &work)
        } catch {
            throw .corrupt("it is not valid JSON, \(error.reason.rawValue) at byte \(error.offset)")
        }
        try separate(count: stored.count)
        bytes.append(stored)
    }

    // MARK: Parts

    private mutating func open(_ bracket: UInt8) throws(CRUDError) {
        guard depth < Self.maximumDepth else { throw .corrupt("it nests deeper than \(Self.maximumDepth)") }
        depth += 1
        try separate(count: 2)
        bytes.append(bracket)
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        depth -= 1
        bytes.append(bracket)
        needsComma = true
    }

    /// Appends a comma if a value needs one before it, and checks that `count` more bytes are allowed.
    private mutating func separate(count: Int) throws(CRUDError) {
        guard bytes.count <= maximumBytes, count <= maximumBytes - bytes.count else {
            throw CRUDError(
                .limitExceeded, "the stored item is longer than a frame",
                details: .init(limit: "frame_bytes", maximum: maximumBytes))
        }
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
    }
}

extension [UInt8] {
    /// Appends a number's decimal digits.
    mutating func append(decimal value: Int128) {
        // Nearly all numbers fit into 64 bits, whose digits are found faster.
        if let value = Int64(exactly: value) {
            append(contentsOf: value.description.utf8)
        } else {
            append(contentsOf: value.description.utf8)
        }
    }
}
