import CRUDDigest
import CRUDModel

/// A revision as the value of the key beside its item's: the item's digest, a space, and the revision.
///
/// The digest tells whether the item is still the one that was written with the revision. If somebody has edited it, or
/// there is no such key, the digest of the item is its revision.
enum StoredRevision {
    private static let digestDigits = 32

    static func value(_ revision: UnsafeRawBufferPointer, of item: some Sequence<UInt8>) -> String {
        "\(digest(item)) \(String(decoding: revision, as: UTF8.self))"
    }

    static func revision(_ value: Any?, of item: [UInt8]) -> [UInt8] {
        let digest = digest(item)
        guard let text = value as? String, text.utf8.starts(with: "\(digest) ".utf8) else { return Array(digest.utf8) }
        let revision = Array(text.utf8.dropFirst(digest.utf8.count + 1))
        let isLegal = (1...Naming.maximumRevisionBytes).contains(revision.count) && revision.allSatisfy(isPrintable)
        return isLegal ? revision : Array(digest.utf8)
    }

    private static func digest(_ item: some Sequence<UInt8>) -> String {
        String(SHA256.digest(item).prefix(digestDigits))
    }

    private static func isPrintable(_ byte: UInt8) -> Bool { 0x20 < byte && byte < 0x7F }
}
