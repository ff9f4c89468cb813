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

/// What a backend has to find where it opens its storage.
package enum ExpectedStorage: Equatable, Sendable {
    /// Nothing: the storage is made if need be.
    case mayBeNew
    /// A storage.
    case any
    /// The storage in which there are collections.
    case one(StorageIdentity)

    /// As the contract has it.
    var rawValue: UInt64 {
        switch self {
        case .mayBeNew: 0
        // CRUDD_ANY_STORAGE
        case .any: .max
        case .one(let identity): identity.rawValue
        }
    }
}
