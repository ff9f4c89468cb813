extension MergePatch {
    /// The patch that changes `before` into `after`; nil if they are equal.
    ///
    /// It has only the members that differ, in the order of `after`, so that it does not affect other members of the
    /// value to which it is applied. Members are compared by name, not by order; of repeated ones the last one counts.
    /// Numbers are equal if their texts are.
    ///
    /// A merge patch cannot set a member to null, only remove it: a null member of `after` counts as missing.
    ///
    /// The depth of recursion is that of the values: they must come from an encoder, which has the same limit, not from
    /// a peer.
    ///
    /// - Parameters:
    ///   - before: the value to which the patch will be applied.
    ///   - after: what it is to become.
    ///   - kept: the paths of members that are not removed although `after` lacks them, each as names from the
    ///     outermost object on.
    package static func difference(
        from before: [UInt8], to after: [UInt8], keeping kept: [[String]] = []
    ) throws(JSONSyntaxError) -> [UInt8]? {
        let kept = kept.map { path in path.map { Array($0.utf8) }[...] }
        guard let patch = try JSONTree(after).difference(from: JSONTree(before), keeping: kept) else { return nil }
        var text: [UInt8] = []
        patch.append(to: &text)
        return text
    }
}

/// A parsed value, for comparison member by member.
private indirect enum JSONTree: Equatable, Sendable {
    case object(Members)
    case array([JSONTree])
    case string([UInt8])
    /// The text of null, true, false, or a number.
    case verbatim([UInt8])

    /// The members of an object. Equality ignores their order.
    struct Members: Equatable, Sendable {
        var names: [[UInt8]] = []
        var values: [[UInt8]: JSONTree] = [:]

        mutating func set(_ name: [UInt8], _ value: JSONTree) {
            if values.updateValue(value, forKey: name) == nil { names.append(name) }
        }

        static func == (left: Members, right: Members) -> Bool { left.values == right.values }
    }

    static let null = JSONTree.verbatim(Array("null".utf8))

    init(_ text: [UInt8]) throws(JSONSyntaxError) {
        var scanner = JSONScanner()
        try self.init(&scanner, text.span)
    }

    private init(_ scanner: inout JSONScanner, _ text: Span<UInt8>) throws(JSONSyntaxError) {
        var isFirst = true
        switch try scanner.peekKind(text) {
        case .object:
            scanner.enter()
            var members = Members()
            while let key = try scanner.nextKey(text, isFirst: &isFirst) {
                members.set(key.decodedString(text), try JSONTree(&scanner, text))
            }
            self = .object(members)
        case .array:
            scanner.enter()
            var elements: [JSONTree] = []
            while try scanner.nextElement(text, isFirst: &isFirst) { elements.append(try JSONTree(&scanner, text)) }
            self = .array(elements)
        case .string:
            self = .string(try scanner.value(text).decodedString(text))
        case .number, .true, .false, .null:
            self = .verbatim(try scanner.value(text).range.map { text[$0] })
        }
    }

    /// The patch that changes `before` into this value; nil if they are equal.
    func difference(from before: JSONTree, keeping kept: [ArraySlice<[UInt8]>]) -> JSONTree? {
        guard case .object(let new) = self, case .object(let old) = before else { return self == before ? nil : self }
        var patch = Members()
        for name in new.names {
            let inner = kept.filter { $0.first == name }.map { $0.dropFirst() }
            guard let value = new.values[name],
                let change = value.difference(from: old.values[name] ?? Self.null, keeping: inner)
            else { continue }
            patch.set(name, change)
        }
        for name in old.names where new.values[name] == nil && !kept.contains([name]) { patch.set(name, Self.null) }
        return patch.names.isEmpty ? nil : .object(patch)
    }

    func append(to text: inout [UInt8]) {
        switch self {
        case .object(let members):
            text.append(UInt8(ascii: "{"))
            for (index, name) in members.names.enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                text.appendJSONString(name)
                text.append(UInt8(ascii: ":"))
                (members.values[name] ?? Self.null).append(to: &text)
            }
            text.append(UInt8(ascii: "}"))
        case .array(let elements):
            text.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                element.append(to: &text)
            }
            text.append(UInt8(ascii: "]"))
        case .string(let bytes): text.appendJSONString(bytes)
        case .verbatim(let bytes): text += bytes
        }
    }
}
