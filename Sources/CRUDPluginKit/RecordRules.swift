import CRUDModel

/// The rules for what a record consists of. The host keeps to them; storage that somebody else has edited may not.
public enum RecordRules {
    /// Whether bytes are 1 to 512 bytes of UTF-8 without control characters.
    public static func isValidID(_ id: RawSpan) -> Bool {
        isValidName(id, maximumBytes: Naming.maximumIDBytes)
    }

    /// Whether bytes are 1 to 128 bytes of UTF-8 without control characters.
    public static func isValidCollectionName(_ name: RawSpan) -> Bool {
        isValidName(name, maximumBytes: Naming.maximumCollectionNameBytes)
    }

    /// Whether bytes are 1 to 64 bytes of printable ASCII.
    public static func isValidRevision(_ revision: RawSpan) -> Bool {
        (1...Naming.maximumRevisionBytes).contains(revision.byteCount)
            && isPrintableASCII(revision, from: UInt8(ascii: "!"))
    }

    private static func isValidName(_ name: RawSpan, maximumBytes: Int) -> Bool {
        if (1...maximumBytes).contains(name.byteCount), isPrintableASCII(name, from: UInt8(ascii: " ")) { return true }
        let name = Span<UInt8>(_bytes: name)
        guard Naming.violation(name, maximum: maximumBytes) == nil else { return false }
        do {
            _ = try UTF8Span(validating: name)
            return true
        } catch {
            return false
        }
    }

    /// Whether all bytes lie between `least` and the last printable character. Every record that is scanned comes here:
    /// without an early exit the compiler makes vector instructions of the loop.
    private static func isPrintableASCII(_ text: RawSpan, from least: UInt8) -> Bool {
        // The pointer is not used after the closure has returned.
        unsafe text.withUnsafeBytes { text in
            let range = UInt8(ascii: "~") - least
            var isOutside: UInt8 = 0
            for byte in text { isOutside |= byte &- least > range ? 1 : 0 }
            return isOutside == 0
        }
    }
}

/// The SHA-256 of `bytes` in lower-case hexadecimal digits: for names that are too long and items without a revision.
public func sha256(_ bytes: some Sequence<UInt8>) -> String {
    SHA256.digest(bytes)
}
