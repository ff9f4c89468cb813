import CRUDJSON
package import CRUDModel

/// Which records are asked for, in what order, and from where on.
package struct Query: Sendable {
    package var filter: Filter?
    /// How ids begin, in UTF-8.
    package var prefix: [UInt8] = []
    package var sort = SortOrder()
    /// Only records behind this position; nil: from the start.
    package var position: SortPosition?
    /// The most records of a page.
    package var limit = DefaultLimits.pageRecords
    /// Which part of the items is wanted; nil: the whole.
    package var fields: FieldProjection?
    /// Whether the result has a plan.
    package var explains = false

    package init() {}

    /// A query with the same filter and prefix, and nothing else.
    var selection: Query {
        var selection = Query()
        selection.filter = filter
        selection.prefix = prefix
        return selection
    }
}

// MARK: Cursors

// A cursor is a position and, before it, the digest of what it belongs to, both in base64. It is neither secret nor
// signed: whoever forges one gets what any other query would give.
extension Query {
    /// The cursor of the page that begins behind a position.
    func cursor(behind position: SortPosition, in collection: [UInt8]) -> [UInt8] {
        Base64.encode(Self.digest(of: identity(in: collection)) + position.json)
    }

    /// Resumes where the previous page ended.
    ///
    /// - Throws: `invalid_query` for anything but a cursor of the same collection, filter, prefix and sort.
    package mutating func resume(from cursor: [UInt8], in collection: [UInt8]) throws(CRUDError) {
        let identity = identity(in: collection)
        // Of a long cursor only the first bytes are decoded before it is known whose it is.
        guard let beginning = Base64.decode(Array(cursor.prefix(Self.digestDigits))),
            let digest = [Self.digest, Self.digestOfEarlierVersions].lazy.map({ $0(identity) })
                .first(where: beginning.starts),
            let bytes = Base64.decode(cursor)
        else { throw CRUDError(.invalidQuery, "the cursor belongs to another query, or is not a cursor") }
        let text = Array(bytes.dropFirst(digest.count))
        position = try SortPosition(json: text.span, count: sort.keys.count)
    }

    /// So many digits of a cursor, which are whole bytes, have its digest.
    private static let digestDigits = 24

    /// Tells collection, filter, prefix and sort from others.
    private func identity(in collection: [UInt8]) -> [UInt8] {
        var writer = JSONWriter()
        writer.array { parts in
            parts.string(utf8: collection)
            if let filter { filter.write(to: &parts) } else { parts.null() }
            parts.string(utf8: prefix)
            sort.write(to: &parts)
        }
        return writer.bytes
    }

    /// FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/): it has to tell mistakes, not attacks.
    private static func digest(of identity: [UInt8]) -> [UInt8] {
        let hash = identity.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return withUnsafeBytes(of: hash.littleEndian) { Array($0) }
    }

    /// What cursors up to the first version begin with, which are still good unless they are of a very long filter:
    /// this digest takes milliseconds then.
    private static func digestOfEarlierVersions(of identity: [UInt8]) -> [UInt8] {
        guard identity.count <= 64 << 10 else { return digest(of: identity) }
        return Array(SHA256.digest(identity).utf8.prefix(16))
    }
}

extension SortPosition {
    /// How long a cursor behind this position is at the most.
    var maximumCursorBytes: Int {
        // An escape makes up to six bytes of one; whether it does is looked at only where it matters.
        var bytes = 64 + id.count * 6 + values.count * 32
        for case .string(let text) in values { bytes += text.count * 6 }
        return Base64.size(of: bytes < 4096 ? bytes : json.count + 16)
    }
}
