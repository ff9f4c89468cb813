/// The limits on the size of a filter, in both of its encodings.
struct FilterLimits {
    static let maximumNodes = 1000
    static let maximumValues = 10_000

    private var nodes = 0
    private var arguments = 0
    private var values = 0

    /// Counts an operation or a constant.
    ///
    /// - Throws: `limitExceeded`.
    mutating func addNode() throws(CRUDError) {
        nodes += 1
        if nodes > Self.maximumNodes { throw Self.exceeded("filter_nodes", Self.maximumNodes) }
    }

    /// Counts an argument of any kind, before it is parsed. An operation has at most three arguments that are not
    /// operations themselves.
    ///
    /// - Throws: `limitExceeded`.
    mutating func addArgument() throws(CRUDError) {
        arguments += 1
        if arguments > 4 * Self.maximumNodes { throw Self.exceeded("filter_nodes", Self.maximumNodes) }
    }

    /// Counts a literal of a list.
    ///
    /// - Throws: `limitExceeded`.
    mutating func addValue() throws(CRUDError) {
        values += 1
        if values > Self.maximumValues { throw Self.exceeded("filter_values", Self.maximumValues) }
    }

    /// - Throws: `limitExceeded`.
    static func check(pattern: String) throws(CRUDError) {
        let maximum = LikePattern.maximumBytes
        guard pattern.utf8.count > maximum else { return }
        throw CRUDError(
            .limitExceeded, "a pattern of the filter has more than \(maximum) bytes",
            details: .init(limit: "filter_pattern", maximum: maximum))
    }

    private static func exceeded(_ limit: String, _ maximum: Int) -> CRUDError {
        let things = limit == "filter_nodes" ? "operations" : "values in lists"
        return CRUDError(
            .limitExceeded, "the filter has more than \(maximum) \(things)",
            details: .init(limit: limit, maximum: maximum))
    }
}
