/// A simple recursive parser for what the daemon sends.
struct JSONParser {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func parse() throws -> JSON {
        let value = try value()
        skipSpace()
        guard position == bytes.count else { throw failure("something after the text") }
        return value
    }

    private mutating func value() throws -> JSON {
        skipSpace()
        let start = position
        let content: JSON.Content =
            switch current {
            case UInt8(ascii: "{"): .object(try members())
            case UInt8(ascii: "["): .array(try elements())
            case UInt8(ascii: "\""): .string(try string())
            case UInt8(ascii: "n"): try literal("null", .null)
            case UInt8(ascii: "t"): try literal("true", .boolean(true))
            case UInt8(ascii: "f"): try literal("false", .boolean(false))
            default: try number()
            }
        return JSON(bytes[start..<position], content)
    }

    private mutating func members() throws -> [JSON.Member] {
        var members: [JSON.Member] = []
        try sequence(UInt8(ascii: "}")) { parser in
            parser.skipSpace()
            let name = try parser.string()
            parser.skipSpace()
            try parser.expect(UInt8(ascii: ":"))
            members.append(JSON.Member(name: name, value: try parser.value()))
        }
        return members
    }

    private mutating func elements() throws -> [JSON] {
        var elements: [JSON] = []
        try sequence(UInt8(ascii: "]")) { elements.append(try $0.value()) }
        return elements
    }

    private mutating func sequence(_ end: UInt8, _ element: (inout JSONParser) throws -> Void) throws {
        position += 1
        skipSpace()
        if current == end {
            position += 1
            return
        }
        while true {
            try element(&self)
            skipSpace()
            if current == end {
                position += 1
                return
            }
            try expect(UInt8(ascii: ","))
        }
    }

    private mutating func string() throws -> String {
        try expect(UInt8(ascii: "\""))
        var units: [UInt8] = []
        while let byte = current, byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 else { throw failure("a raw control character") }
            position += 1
            if byte == UInt8(ascii: "\\") { try escape(into: &units) } else { units.append(byte) }
        }
        try expect(UInt8(ascii: "\""))
        guard let string = String(validating: units, as: UTF8.self) else { throw failure("no UTF-8") }
        return string
    }

    private mutating func escape(into units: inout [UInt8]) throws {
        let plain: [UInt8: UInt8] = [
            0x22: 0x22, 0x5C: 0x5C, 0x2F: 0x2F, UInt8(ascii: "b"): 8, UInt8(ascii: "f"): 12, UInt8(ascii: "n"): 10,
            UInt8(ascii: "r"): 13, UInt8(ascii: "t"): 9,
        ]
        guard let letter = current else { throw failure("no end of a string") }
        position += 1
        if let byte = plain[letter] {
            units.append(byte)
            return
        }
        guard letter == UInt8(ascii: "u") else { throw failure("an unknown escape") }
        var code = try hexadecimal()
        if 0xD800..<0xDC00 ~= code {
            try expect(UInt8(ascii: "\\"))
            try expect(UInt8(ascii: "u"))
            let low = try hexadecimal()
            guard 0xDC00..<0xE000 ~= low else { throw failure("a lone surrogate") }
            code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(code) else { throw failure("a lone surrogate") }
        units += Array(String(Character(scalar)).utf8)
    }

    private mutating func hexadecimal() throws -> UInt32 {
        guard position + 4 <= bytes.count,
            let code = UInt32(String(decoding: bytes[position..<position + 4], as: UTF8.self), radix: 16)
        else { throw failure("no four hexadecimal digits") }
        position += 4
        return code
    }

    private mutating func number() throws -> JSON.Content {
        let start = position
        while let byte = current, Array("+-.eE0123456789".utf8).contains(byte) { position += 1 }
        guard position > start else { throw failure("no value") }
        return .number
    }

    private mutating func literal(_ word: String, _ content: JSON.Content) throws -> JSON.Content {
        for byte in word.utf8 { try expect(byte) }
        return content
    }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte = current, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { position += 1 }
    }

    private mutating func expect(_ byte: UInt8) throws {
        guard current == byte else { throw failure("no \(Character(Unicode.Scalar(byte)))") }
        position += 1
    }

    private func failure(_ reason: String) -> Failure {
        Failure("\(reason) at byte \(position) of \(String(decoding: bytes.prefix(400), as: UTF8.self))")
    }
}
