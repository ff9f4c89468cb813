import Foundation

/// Foundation's parser, for comparison with the scanner.
enum FoundationJSON {
    /// Whether Foundation accepts a text as JSON; nil where it is known to deviate from RFC 8259.
    ///
    /// It accepts a comma before the end of an object or array. (It also guesses other encodings from NULs and byte
    /// order marks, and rejects numbers beyond binary64 and deep nesting; the tests have no such texts.)
    static func accepts(_ text: [UInt8]) -> Bool? {
        let isAccepted = (try? JSONSerialization.jsonObject(with: Data(text), options: .fragmentsAllowed)) != nil
        return isAccepted && hasTrailingComma(text) ? nil : isAccepted
    }

    private static func hasTrailingComma(_ text: [UInt8]) -> Bool {
        let visible = text.filter { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        return zip(visible, visible.dropFirst()).contains {
            $0 == UInt8(ascii: ",") && ($1 == UInt8(ascii: "}") || $1 == UInt8(ascii: "]"))
        }
    }
}
