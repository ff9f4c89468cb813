import CRUDJSON
import CRUDModel

/// Writes the options of a backend as JSON, plain scalars resolved by the core schema of YAML 1.2: `null`, booleans,
/// integers (`0x` and `0o` too) and floats become what they are in JSON, everything else, and whatever is quoted, a
/// string. Decimal numbers keep their digits, however many.
///
/// JSON has no infinities and no NaN: they are errors. So are hexadecimal and octal numbers over 64 bits, which would
/// have to be computed rather than copied.
///
/// Source: [YAML 1.2.2, 10.3.2](https://yaml.org/spec/1.2.2/#1032-tag-resolution).
struct OptionsEncoder {
    private(set) var diagnostics: [(position: SourcePosition, message: String)] = []
    private var writer = JSONWriter()

    var json: [UInt8] { writer.bytes }

    /// Appends a value. Recurses as deeply as the composer lets a document nest.
    mutating func encode(_ node: YAMLNode) {
        Self.write(node, to: &writer, diagnostics: &diagnostics)
    }

    private static func write(
        _ node: YAMLNode, to writer: inout JSONWriter, diagnostics: inout [(position: SourcePosition, message: String)]
    ) {
        switch node.content {
        case .mapping(let entries):
            writer.object { writer in
                for entry in entries {
                    writer.key(String(decoding: entry.key, as: UTF8.self))
                    write(entry.value, to: &writer, diagnostics: &diagnostics)
                }
            }
        case .sequence(let elements):
            writer.array { writer in
                for element in elements { write(element, to: &writer, diagnostics: &diagnostics) }
            }
        case .scalar(let text, isPlain: false): writer.string(utf8: text)
        case .scalar(let text, isPlain: true):
            switch CoreScalar(text) {
            case .null: writer.null()
            case .bool(let value): writer.bool(value)
            case .number(let json): writer.raw(json)
            case .string: writer.string(utf8: text)
            case .notInJSON(let reason): diagnostics.append((node.position, "\(quoted(text)) \(reason)"))
            }
        case .invalid: break
        }
    }
}

/// The value of a plain scalar in the core schema.
enum CoreScalar: Equatable {
    case null
    case bool(Bool)
    /// As JSON text.
    case number([UInt8])
    case string
    /// A number that cannot be converted to JSON, and why.
    case notInJSON(String)

    init(_ text: [UInt8]) {
        switch String(decoding: text, as: UTF8.self) {
        case "", "~", "null", "Null", "NULL": self = .null
        case "true", "True", "TRUE": self = .bool(true)
        case "false", "False", "FALSE": self = .bool(false)
        case ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF":
            self = .notInJSON("is a number that JSON cannot represent")
        default:
            if let number = Self.based(text) ?? Self.decimal(text).map(CoreScalar.number) {
                self = number
            } else {
                self = .string
            }
        }
    }

    /// `0o17` or `0x1F`.
    private static func based(_ text: [UInt8]) -> CoreScalar? {
        let radix =
            switch text.prefix(2) {
            case [UInt8(ascii: "0"), UInt8(ascii: "o")]: 8
            case [UInt8(ascii: "0"), UInt8(ascii: "x")]: 16
            default: 0
            }
        let digits = text.dropFirst(2)
        guard radix > 0, !digits.isEmpty,
            digits.allSatisfy({ Character(Unicode.Scalar($0)).hexDigitValue.map { $0 < radix } ?? false })
        else { return nil }
        guard let value = UInt64(String(decoding: digits, as: UTF8.self), radix: radix) else {
            return .notInJSON("is over 64 bits")
        }
        return .number(Array(String(value).utf8))
    }

    /// An integer or float in decimal: digit for digit, without what JSON does not allow (a plus sign, leading zeros)
    /// and with the zero that it requires on either side of the point.
    private static func decimal(_ text: [UInt8]) -> [UInt8]? {
        var rest = text[...]
        var json: [UInt8] = []
        func takeDigits() -> ArraySlice<UInt8> {
            let digits = rest.prefix { isDigit($0) }
            rest = rest.dropFirst(digits.count)
            return digits
        }
        func take(_ bytes: StaticString) -> UInt8? {
            guard let first = rest.first, String(describing: bytes).utf8.contains(first) else { return nil }
            rest = rest.dropFirst()
            return first
        }
        if take("+-") == UInt8(ascii: "-") { json.append(UInt8(ascii: "-")) }
        let whole = takeDigits()
        let significant = whole.drop { $0 == UInt8(ascii: "0") }
        json += significant.isEmpty ? [UInt8(ascii: "0")] : significant
        if take(".") != nil {
            let fraction = takeDigits()
            guard !(whole.isEmpty && fraction.isEmpty) else { return nil }
            json.append(UInt8(ascii: "."))
            json += fraction.isEmpty ? [UInt8(ascii: "0")] : fraction
        } else if whole.isEmpty {
            return nil
        }
        if take("eE") != nil {
            json.append(UInt8(ascii: "e"))
            if let sign = take("+-") { json.append(sign) }
            let exponent = takeDigits()
            guard !exponent.isEmpty else { return nil }
            json += exponent
        }
        return rest.isEmpty ? json : nil
    }
}
