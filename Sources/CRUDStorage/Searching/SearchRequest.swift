package import CRUDQuery

/// What a search looks for.
package struct SearchRequest: Sendable {
    package enum Kind: Sendable {
        /// `record.query`: a page of records.
        case query
        /// `record.count`: how many records match.
        case count
    }

    package var kind: Kind
    package var query: Query
    /// How long records and cursor of a page may be together.
    package var maximumBytes: Int
    /// How long the text of one item may be.
    package var maximumItemBytes: Int
    /// A page that does not need all records ends early after this.
    package var timeout: Duration

    package init(_ kind: Kind, _ query: Query, maximumBytes: Int, maximumItemBytes: Int, timeout: Duration) {
        self.kind = kind
        self.query = query
        self.maximumBytes = maximumBytes
        self.maximumItemBytes = maximumItemBytes
        self.timeout = timeout
    }
}
