import Foundation

/// An item as the value of a key: a string that people and other tools can read where it is text that XML carries
/// unchanged, otherwise data.
///
/// The list is XML, in which control characters but TAB and LF, U+FFFE and U+FFFF cannot stand; CR becomes LF when it
/// is read, and Foundation drops a leading U+FEFF.
enum StoredItem {
    static func value(_ item: UnsafeRawBufferPointer) -> any Sendable {
        let text = String(validating: item, as: UTF8.self)
        if let text, text.unicodeScalars.allSatisfy(isCarried) { return text }
        return Data(item)
    }

    /// The item that a value stands for; empty for a value of another type, whose record is corrupt.
    static func bytes(_ value: Any) -> [UInt8] {
        switch value {
        case let text as String: Array(text.utf8)
        case let data as Data: Array(data)
        default: []
        }
    }

    private static func isCarried(_ character: Unicode.Scalar) -> Bool {
        switch character.value {
        case 0x09, 0x0A: true
        case 0..<0x20, 0x7F, 0xFEFF, 0xFFFE, 0xFFFF: false
        default: true
        }
    }
}
