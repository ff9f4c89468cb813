/// What a deletion of many records must say, so that an empty variable in a script, or a list of conditions that turns
/// out to be empty, does not delete every record.
package enum BulkDeletionRule {
    /// Checks a selection that is not meant to be every record.
    ///
    /// - Parameters:
    ///   - filter: nil: none was given.
    ///   - prefix: in UTF-8; nil: none was given.
    /// - Throws: `invalid_params` unless the prefix has a character or the filter names a property.
    package static func check(filter: Filter?, prefix: [UInt8]?) throws(CRUDError) {
        if prefix?.isEmpty == false || filter?.isConstant == false { return }
        let instead = "every record is meant by `all: true` alone"
        if filter != nil { throw .invalid("filter", "names no property; \(instead)") }
        if prefix != nil { throw .invalid("prefix", "is empty; \(instead)") }
        throw .invalid("filter", "or `prefix` is missing; \(instead)")
    }
}

extension Filter {
    /// Whether it names no property, so that it is the same for every record.
    package var isConstant: Bool {
        switch self {
        case .constant: true
        case .and(let filters), .or(let filters): filters.allSatisfy(\.isConstant)
        case .not(let filter): filter.isConstant
        case .comparison, .like, .between, .isIn, .isNull, .arrayContains: false
        }
    }
}
