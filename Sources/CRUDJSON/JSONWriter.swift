/// Appends JSON text to bytes and inserts the commas.
package struct JSONWriter {
    package var bytes: [UInt8]
    /// Whether the next key or element needs a comma before it.
    private var needsComma = false

    package init(into bytes: consuming [UInt8] = []) {
        self.bytes = bytes
    }

    /// `{…}` with what `members` writes, by ``member(_:_:)`` or ``key(_:)``.
    package mutating func object(_ members: (inout JSONWriter) -> Void) {
        container(UInt8(ascii: "{"), UInt8(ascii: "}"), members)
    }

    /// `[…]` with the elements that `elements` writes.
    package mutating func array(_ elements: (inout JSONWriter) -> Void) {
        container(UInt8(ascii: "["), UInt8(ascii: "]"), elements)
    }

    /// A member's key; its value must be written next.
    package mutating func key(_ key: String) {
        separate()
        bytes.appendJSONString(key.utf8)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    package mutating func string(_ value: String) {
        separate()
        bytes.appendJSONString(value.utf8)
    }

    package mutating func string(utf8 value: [UInt8]) {
        separate()
        bytes.appendJSONString(value.span)
    }

    package mutating func string(utf8 value: some Sequence<UInt8>) {
        separate()
        bytes.appendJSONString(value)
    }

    package mutating func integer(_ value: some BinaryInteger) {
        separate()
        bytes.append(contentsOf: String(value).utf8)
    }

    package mutating func bool(_ value: Bool) {
        separate()
        bytes.append(value ? "true" : "false")
    }

    package mutating func null() {
        separate()
        bytes.append("null")
    }

    /// A value that is JSON text already.
    package mutating func raw(_ value: [UInt8]) {
        separate()
        bytes.append(contentsOf: value)
    }

    /// A value that is JSON text already.
    package mutating func raw(_ value: some Sequence<UInt8>) {
        separate()
        bytes.append(contentsOf: value)
    }

    package mutating func member(_ key: String, _ value: String) {
        self.key(key)
        string(value)
    }

    package mutating func member(_ key: String, _ value: some BinaryInteger) {
        self.key(key)
        integer(value)
    }

    package mutating func member(_ key: String, _ value: Bool) {
        self.key(key)
        bool(value)
    }

    package mutating func member(_ key: String, strings: some Sequence<String>) {
        self.key(key)
        array { for string in strings { $0.string(string) } }
    }

    /// A member that is an array of objects, of each element one.
    package mutating func member<Element>(
        _ key: String, objects: some Sequence<Element>, _ members: (Element, inout JSONWriter) -> Void
    ) {
        self.key(key)
        array { list in
            for element in objects { list.object { members(element, &$0) } }
        }
    }

    private mutating func container(_ open: UInt8, _ close: UInt8, _ contents: (inout JSONWriter) -> Void) {
        separate()
        bytes.append(open)
        needsComma = false
        contents(&self)
        bytes.append(close)
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
    }
}

extension [UInt8] {
    /// Appends a JSON string with this value, quotes included. Only what JSON requires is escaped.
    package mutating func appendJSONString(_ utf8: some Sequence<UInt8>) {
        // Nearly every sequence is stored contiguously, and is copied without a call for each byte.
        let isDone: Void? = utf8.withContiguousStorageIfAvailable { appendJSONString($0.span) }
        if isDone == nil { appendJSONString(Array(utf8).span) }
    }

    /// Appends a JSON string with this value, quotes included. Only what JSON requires is escaped.
    package mutating func appendJSONString(_ utf8: Span<UInt8>) {
        append(UInt8(ascii: "\""))
        appendJSONContent(utf8)
        append(UInt8(ascii: "\""))
    }

    /// Appends the content of a string. What has to be escaped are single bytes.
    private mutating func appendJSONContent(_ utf8: Span<UInt8>) {
        var start = 0
        for index in utf8.indices {
            let byte = utf8[index]
            guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
            append(utf8.extracting(start..<index))
            appendJSONEscaped(byte)
            start = index + 1
        }
        append(utf8.extracting(start..<utf8.count))
    }

    /// As ``appendJSONString(_:)-(Span<UInt8>)``; where the work is stopped, a part of it.
    package mutating func appendJSONString(_ utf8: Span<UInt8>, _ work: inout Work) {
        append(UInt8(ascii: "\""))
        var start = 0
        while start < utf8.count, work.take(Swift.min(Work.interval, utf8.count - start)) {
            let end = Swift.min(start + Work.interval, utf8.count)
            appendJSONContent(utf8.extracting(start..<end))
            start = end
        }
        append(UInt8(ascii: "\""))
    }

    /// Appends the bytes of a span.
    package mutating func append(_ bytes: Span<UInt8>) {
        bytes.withUnsafeBufferPointer { append(contentsOf: $0) }
    }

    /// Appends the bytes of a literal.
    package mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { append(contentsOf: $0) }
    }

    /// Appends one byte of a JSON string's content, escaped if JSON requires it.
    package mutating func appendJSONEscaped(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"):
            append(UInt8(ascii: "\\"))
            append(byte)
        case 0x08: append("\\b")
        case 0x0C: append("\\f")
        case 0x0A: append("\\n")
        case 0x0D: append("\\r")
        case 0x09: append("\\t")
        case 0..<0x20:
            append("\\u00")
            append(byte < 0x10 ? UInt8(ascii: "0") : UInt8(ascii: "1"))
            let digit = byte & 0x0F
            append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        default: append(byte)
        }
    }
}
