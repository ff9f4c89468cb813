import CRUDJSON

/// The members of an object as they were scanned, in order. Of very many only the first are kept: no method has so many
/// parameters, so that a request with more is rejected whatever the others are.
struct MemberList {
    /// How many members are kept, beside those that are essential.
    private static let maximumCount = 10_000

    private var members: [(key: JSONSlice, value: JSONSlice)] = []
    /// The depth of the deepest value, whether it is kept or not.
    private(set) var deepest = 0

    var count: Int { members.count }

    subscript(index: Int) -> (key: JSONSlice, value: JSONSlice) { members[index] }

    mutating func removeAll() {
        members.removeAll(keepingCapacity: members.count <= 64)
        deepest = 0
    }

    /// - Parameter isEssential: whether it is kept beyond that. Of very many such members two have the same name, which
    ///   is an error.
    mutating func append(_ key: JSONSlice, _ value: JSONSlice, isEssential: @autoclosure () -> Bool = false) {
        let (count, maximum) = (members.count, Self.maximumCount)
        if count < maximum || count < 2 * maximum && isEssential() { members.append((key, value)) }
        deepest = max(deepest, value.depth)
    }

    /// Whether a value nests deeper than `maximum`; `operations` may nest two levels deeper, because it contains items.
    func nest(deeperThan maximum: Int, _ text: Span<UInt8>) -> Bool {
        guard deepest > maximum else { return false }
        return members.contains { member in
            member.value.depth > maximum + (member.key.equals(Parameter.operations.name, text) ? 2 : 0)
        }
    }

    /// The value of the first member with this name.
    func value(of name: StaticString, _ text: Span<UInt8>) -> JSONSlice? {
        for member in members where member.key.equals(name, text) { return member.value }
        return nil
    }

    /// Whether two members have the same name, escapes decoded. Few members are compared in pairs, without a copy.
    func hasDuplicate(_ text: Span<UInt8>) -> Bool {
        guard count <= 8, !members.contains(where: \.key.hasEscapes) else {
            var names = Set<[UInt8]>(minimumCapacity: count)
            return members.contains { !names.insert($0.key.decodedString(text)).inserted }
        }
        for later in members.indices {
            for earlier in 0..<later where Self.same(members[earlier].key, members[later].key, text) { return true }
        }
        return false
    }

    private static func same(_ left: JSONSlice, _ right: JSONSlice, _ text: Span<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        for offset in 0..<left.count where text[left.start + offset] != text[right.start + offset] { return false }
        return true
    }
}
