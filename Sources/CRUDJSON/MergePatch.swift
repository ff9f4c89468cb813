/// Applies a JSON Merge Patch (RFC 7396) to an item, byte for byte.
///
/// What the patch does not change is copied: digits of numbers, escapes of strings, order of members. A member that the
/// patch sets keeps its place, new ones follow in the patch's order; of repeated members of the patch the last one
/// counts. White space between the members of changed objects is removed.
///
/// Patch and item are scanned once each. The depth of recursion is that of the patch: whoever accepts a patch from a
/// peer must limit it.
package struct MergePatch {
    /// The members of an object of the patch.
    private struct Members {
        var members: [(key: JSONSlice, change: Change)] = []
        /// The index in `members` of each name.
        var indexes: [[UInt8]: Int] = [:]
    }

    /// How the patch changes a value.
    private indirect enum Change {
        case remove
        case replace(JSONSlice)
        case merge(Members)
    }

    /// The result of applying a patch.
    ///
    /// - Parameter item: the value it is applied to; a missing record's is `{}`.
    /// - Throws: JSONSyntaxError if either is not valid JSON.
    /// - SeeAlso: <https://www.rfc-editor.org/rfc/rfc7396>
    package static func apply(_ patch: Span<UInt8>, to item: Span<UInt8>) throws(JSONSyntaxError) -> [UInt8] {
        var scanner = JSONScanner()
        let change = try change(&scanner, patch)
        try scanner.expectEnd(patch)
        var output: [UInt8] = []
        output.reserveCapacity(item.count + patch.count)
        scanner.reset()
        switch change {
        case .remove:
            _ = try scanner.value(item)
            output += "null".utf8
        case .replace(let value):
            _ = try scanner.value(item)
            output.append(patch.extracting(value.range))
        case .merge(let members): try merge(members, patch, into: &scanner, item, &output)
        }
        try scanner.expectEnd(item)
        return output
    }

    // MARK: The patch

    private static func change(
        _ scanner: inout JSONScanner, _ patch: Span<UInt8>
    ) throws(JSONSyntaxError) -> Change {
        switch try scanner.peekKind(patch) {
        case .object: break
        case .null:
            _ = try scanner.value(patch)
            return .remove
        default: return .replace(try scanner.value(patch))
        }
        var members = Members()
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(patch, isFirst: &isFirst) {
            let change = try change(&scanner, patch)
            let name = key.decodedString(patch)
            if let index = members.indexes[name] {
                members.members[index].change = change
            } else {
                members.indexes[name] = members.members.count
                members.members.append((key, change))
            }
        }
        return .merge(members)
    }

    // MARK: The item

    /// Appends the item's next value with the changes of the patch.
    private static func merge(
        _ changes: Members, _ patch: Span<UInt8>, into scanner: inout JSONScanner, _ item: Span<UInt8>,
        _ output: inout [UInt8]
    ) throws(JSONSyntaxError) {
        guard try scanner.peekKind(item) == .object else {
            _ = try scanner.value(item)
            return append(changes, patch, &output)
        }
        var isFound = [Bool](repeating: false, count: changes.members.count)
        var separator = UInt8(ascii: "{")
        func begin(_ key: JSONSlice, of text: Span<UInt8>) {
            output.append(separator)
            output.append(text.extracting(key.range))
            output.append(UInt8(ascii: ":"))
            separator = UInt8(ascii: ",")
        }
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(item, isFirst: &isFirst) {
            guard let index = changes.indexes[key.decodedString(item)] else {
                begin(key, of: item)
                output.append(item.extracting(try scanner.value(item).range))
                continue
            }
            isFound[index] = true
            switch changes.members[index].change {
            case .remove: _ = try scanner.value(item)
            case .replace(let value):
                _ = try scanner.value(item)
                begin(key, of: item)
                output.append(patch.extracting(value.range))
            case .merge(let members):
                begin(key, of: item)
                try merge(members, patch, into: &scanner, item, &output)
            }
        }
        for (index, member) in changes.members.enumerated() where !isFound[index] {
            if case .remove = member.change { continue }
            begin(member.key, of: patch)
            append(member.change, patch, &output)
        }
        if separator == UInt8(ascii: "{") { output.append(separator) }
        output.append(UInt8(ascii: "}"))
    }

    /// Appends the value that a change creates where there was none.
    private static func append(_ change: Change, _ patch: Span<UInt8>, _ output: inout [UInt8]) {
        switch change {
        case .remove: break
        case .replace(let value): output.append(patch.extracting(value.range))
        case .merge(let members): append(members, patch, &output)
        }
    }

    private static func append(_ changes: Members, _ patch: Span<UInt8>, _ output: inout [UInt8]) {
        output.append(UInt8(ascii: "{"))
        var isFirst = true
        for member in changes.members {
            if case .remove = member.change { continue }
            if !isFirst { output.append(UInt8(ascii: ",")) }
            isFirst = false
            output.append(patch.extracting(member.key.range))
            output.append(UInt8(ascii: ":"))
            append(member.change, patch, &output)
        }
        output.append(UInt8(ascii: "}"))
    }
}
