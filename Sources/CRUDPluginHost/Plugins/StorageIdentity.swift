/// What tells a storage from all others: a random number that was made with it, and is in every copy of it.
package struct StorageIdentity: Hashable, Sendable, CustomStringConvertible {
    private let number: UInt64

    /// - Parameter number: as the plugin tells it; 0: it has none.
    init?(_ number: UInt64) {
        guard number != 0 else { return nil }
        self.number = number
    }

    /// Reads ``description``; nil for any other text.
    package init?(_ text: String) {
        guard text.utf8.count == 16, text.lowercased() == text, let number = UInt64(text, radix: 16) else { return nil }
        self.init(number)
    }

    /// 16 hexadecimal digits.
    package var description: String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// As the child protocol has it.
    package var rawValue: UInt64 { number }
}
