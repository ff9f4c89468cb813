import CRUDJSON
package import CRUDModel

/// A place in a feed as its reader gets it: encrypted, and protected against changes.
///
/// Sequence numbers count what is written to all collections of a backend, which is none of the business of who reads
/// one of them. The key is the identity of the history that the cursor is a place of: a random number that is stored
/// with the collection and shown to nobody. So a cursor outlives the daemon, can be read by any other one that has the
/// same storage, and by none once that history has ended.
///
/// It is a synthetic initialization vector ([RFC 5297](https://www.rfc-editor.org/rfc/rfc5297)) with SHA-256: a digest
/// of key and message is both what encrypts the message and what shows that it is unchanged. The message begins with a
/// random number, so that two cursors of one place differ: whether anything was written is not told either.
package struct SealedCursor: Sendable, Equatable {
    private static let letters = Array("cs".utf8)
    private static let tagBytes = 16
    /// A random number, `sequence`, `base`.
    private static let messageBytes = 24

    private let tag: [UInt8]
    private let encrypted: [UInt8]

    package init(_ cursor: ChangesCursor) {
        let message = [UInt64.random(in: .min ... .max), cursor.sequence, cursor.base].flatMap(\.bigEndianBytes)
        tag = Self.tag(of: message, cursor.identity)
        encrypted = Self.encrypt(message, tag, cursor.identity)
    }

    /// - Throws: `invalid_query` for a text that does not have the form of a cursor.
    package init(text: [UInt8]) throws(CRUDError) {
        let count = Self.letters.count + Self.tagBytes + Self.messageBytes
        guard let bytes = Base64.decode(text), bytes.count == count, bytes.starts(with: Self.letters) else {
            throw CRUDError(.invalidQuery, #"`after` is neither "start" nor "now" nor a cursor of changes"#)
        }
        tag = Array(bytes.dropFirst(Self.letters.count).prefix(Self.tagBytes))
        encrypted = Array(bytes.suffix(Self.messageBytes))
    }

    package var text: [UInt8] { Base64.encode(Self.letters + tag + encrypted) }

    /// The place; nil unless it is one of that history.
    func opened(identity: UInt64) -> ChangesCursor? {
        let message = Self.encrypt(encrypted, tag, identity)
        guard tag == Self.tag(of: message, identity) else { return nil }
        func number(_ index: Int) -> UInt64 {
            message.dropFirst(index * 8).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        }
        return ChangesCursor(identity: identity, sequence: number(1), base: number(2))
    }

    /// Encrypts, and decrypts too.
    private static func encrypt(_ message: [UInt8], _ tag: [UInt8], _ key: UInt64) -> [UInt8] {
        zip(message, digest("e", key, tag)).map { $0 ^ $1 }
    }

    private static func tag(of message: [UInt8], _ key: UInt64) -> [UInt8] {
        Array(digest("t", key, message).prefix(tagBytes))
    }

    private static func digest(_ use: Character, _ key: UInt64, _ message: [UInt8]) -> [UInt8] {
        var hash = SHA256()
        hash.update("\(use)".utf8)
        hash.update(key.bigEndianBytes)
        hash.update(message)
        return hash.finishBytes()
    }
}

extension UInt64 {
    fileprivate var bigEndianBytes: [UInt8] {
        (0..<8).reversed().map { UInt8(truncatingIfNeeded: self >> UInt64($0 * 8)) }
    }
}
