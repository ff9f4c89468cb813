import CRUDDigest
import CRUDJSON
package import CRUDModel

/// Which records are asked for, in what order, and from where on.
package struct Query: Sendable {
    package var filter: Filter?
    /// How ids begin, in UTF-8.
    package var prefix: [UInt8] = []
    package var sort = SortOrder()
    /// Where the page before ended; nil: from the start.
    package var position: SortPosition?
    /// The most records of a page.
    package var limit = 1000
    /// What part of items is wanted; nil: the whole.
    package var projection: FieldProjection?
    /// Whether to tell how it is carried out.
    package var explains = false

    package init() {}

    /// The filter as a plugin reads it; empty: none.
    var filterText: [UInt8] {
        guard let filter else { return [] }
        var writer = JSONWriter()
        filter.write(to: &writer)
        return writer.bytes
    }

    /// The order as a plugin reads it; empty: by id.
    var sortText: [UInt8] {
        guard !sort.keys.isEmpty else { return [] }
        var writer = JSONWriter()
        sort.write(to: &writer)
        return writer.bytes
    }
}

// MARK: Cursors

// A cursor is a position and, before it, the digest of what it belongs to, both in base 64. It is not secret and not
// signed: somebody who makes up one gets what any other query would give.
extension Query {
    /// The cursor of the page that begins behind a position.
    func cursor(behind position: SortPosition, in collection: [UInt8]) -> [UInt8] {
        Base64.encode(digest(in: collection) + position.json)
    }

    /// Goes on where the page before ended.
    ///
    /// - Throws: `invalid_query` for what is no cursor of the same collection, filter, prefix and sort.
    package mutating func goOn(from cursor: [UInt8], in collection: [UInt8]) throws(CRUDError) {
        let digest = digest(in: collection)
        guard let bytes = Base64.decode(cursor), bytes.starts(with: digest) else {
            throw CRUDError(.invalidQuery, "the cursor belongs to another query, or is none")
        }
        let text = Array(bytes.dropFirst(digest.count))
        position = try SortPosition(json: text.span, count: sort.keys.count)
    }

    /// Tells collection, filter, prefix and sort from others.
    private func digest(in collection: [UInt8]) -> [UInt8] {
        var writer = JSONWriter()
        writer.array { parts in
            parts.string(utf8: collection)
            parts.raw(filter == nil ? Array("null".utf8) : filterText)
            parts.string(utf8: prefix)
            sort.write(to: &parts)
        }
        return Array(SHA256.digest(writer.bytes).utf8.prefix(16))
    }
}
