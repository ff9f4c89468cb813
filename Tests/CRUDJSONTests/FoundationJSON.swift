import Foundation

/// What Foundation's parser says, for comparison with the scanner.
enum FoundationJSON {
    /// Whether Foundation takes a text for JSON; nil where it is known to go its own way.
    ///
    /// It forgives a comma before the end of an object or array. (It also guesses other encodings from NULs and byte order
    /// marks, and refuses numbers beyond binary64 and deep nesting; the texts that it is asked about have nothing of
    /// that.)
    static func accepts(_ text: [UInt8]) -> Bool? {
        let isAccepted = (try? JSONSerialization.jsonObject(with: Data(text), options: .fragmentsAllowed)) != nil
        return isAccepted && hasIdleComma(text) ? nil : isAccepted
    }

    private static func hasIdleComma(_ text: [UInt8]) -> Bool {
        let visible = text.filter { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        return zip(visible, visible.dropFirst()).contains {
            $0 == UInt8(ascii: ",") && ($1 == UInt8(ascii: "}") || $1 == UInt8(ascii: "]"))
        }
    }
}
