/// In what order records come: by one property after the other, and by id, ascending, where all of them tie.
///
/// Values of different types come in this order: missing and null, false, true, numbers by value, strings by code point,
/// arrays, objects. Two arrays tie, two objects tie, and so do missing and null.
public struct SortOrder: Sendable, Hashable {
    /// The first key decides first. None: by id alone.
    public var keys: [SortKey]

    public init(_ keys: [SortKey] = []) {
        self.keys = keys
    }
}

/// One property that records are sorted by.
public struct SortKey: Sendable, Hashable {
    public var path: PropertyPath
    /// Whether the order of types and values is reversed; that of ids is not.
    public var isDescending: Bool

    public init(_ path: PropertyPath, isDescending: Bool = false) {
        self.path = path
        self.isDescending = isDescending
    }
}
