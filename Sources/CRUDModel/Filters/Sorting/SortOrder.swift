/// The order of records: by one property after another, and by id, ascending, if all of them tie.
///
/// Values of different types have this order: missing and null, false, true, numbers by value, strings by code point,
/// arrays, objects. Two arrays tie, two objects tie, and so do missing and null.
public struct SortOrder: Sendable, Hashable {
    /// The first key is the most significant. None: by id only.
    public var keys: [SortKey]

    public init(_ keys: [SortKey] = []) {
        self.keys = keys
    }
}

/// One property that records are sorted by.
public struct SortKey: Sendable, Hashable {
    public var path: PropertyPath
    /// Whether the order of types and values is reversed; that of ids never is.
    public var isDescending: Bool

    public init(_ path: PropertyPath, isDescending: Bool = false) {
        self.path = path
        self.isDescending = isDescending
    }
}
