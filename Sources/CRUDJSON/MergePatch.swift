/// Applies a JSON Merge Patch (RFC 7396) to an item, byte for byte.
///
/// What the patch does not change is copied: digits of numbers, escapes of strings, order of members. A member that the
/// patch sets keeps its place, new ones follow in the patch's order; of repeated members of the patch the last one
/// counts. White space between the members of changed objects is removed.
///
/// Patch and item are scanned once each, and a name is found in constant time. The depth of recursion is that of the
/// patch: whoever accepts a patch from a peer must limit it.
package struct MergePatch: ~Copyable {
    /// A member of an object of the patch.
    private struct Member {
        var key: JSONSlice
        var change: Change
        /// The next one of its object, in the patch's order; −1: it is the last.
        var next = -1
        /// Whether the item has it.
        var isFound = false
    }

    /// How the patch changes a value.
    private enum Change {
        case remove
        case replace(JSONSlice)
        /// It is an object of the patch, by its number.
        case merge(Int)
    }

    /// All members of all objects, in the order of the table.
    private var members: [Member] = []
    private var names = NameTable()
    /// The first member of each object; −1: it has none.
    private var firstMembers: [Int] = []

    private init() {}

    /// The result of applying a patch.
    ///
    /// - Parameter item: the value it is applied to; a missing record's is `{}`.
    /// - Throws: JSONSyntaxError if either is not valid JSON.
    /// - SeeAlso: <https://www.rfc-editor.org/rfc/rfc7396>
    package static func apply(_ patch: Span<UInt8>, to item: Span<UInt8>) throws(JSONSyntaxError) -> [UInt8] {
        var scanner = JSONScanner()
        var merge = MergePatch()
        let change = try merge.read(&scanner, patch)
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
        case .merge(let object): try merge.merge(object, patch, into: &scanner, item, &output)
        }
        try scanner.expectEnd(item)
        return output
    }

    // MARK: The patch

    private mutating func read(
        _ scanner: inout JSONScanner, _ patch: Span<UInt8>
    ) throws(JSONSyntaxError) -> Change {
        switch try scanner.peekKind(patch) {
        case .object: break
        case .null:
            _ = try scanner.value(patch)
            return .remove
        default: return .replace(try scanner.value(patch))
        }
        let object = firstMembers.count
        firstMembers.append(-1)
        var last = -1
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(patch, isFirst: &isFirst) {
            let (index, isNew) = names.insert(key, patch, of: object)
            if isNew {
                members.append(Member(key: key, change: .remove))
                if last < 0 { firstMembers[object] = index } else { members[last].next = index }
                last = index
            }
            members[index].change = try read(&scanner, patch)
        }
        return .merge(object)
    }

    // MARK: The item

    /// Appends the item's next value with the changes of an object of the patch.
    private mutating func merge(
        _ object: Int, _ patch: Span<UInt8>, into scanner: inout JSONScanner, _ item: Span<UInt8>,
        _ output: inout [UInt8]
    ) throws(JSONSyntaxError) {
        guard try scanner.peekKind(item) == .object else {
            _ = try scanner.value(item)
            return append(object, patch, &output)
        }
        var index = firstMembers[object]
        while index >= 0 {
            members[index].isFound = false
            index = members[index].next
        }
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
            guard let index = names.index(of: key, item, in: object) else {
                begin(key, of: item)
                output.append(item.extracting(try scanner.value(item).range))
                continue
            }
            members[index].isFound = true
            switch members[index].change {
            case .remove: _ = try scanner.value(item)
            case .replace(let value):
                _ = try scanner.value(item)
                begin(key, of: item)
                output.append(patch.extracting(value.range))
            case .merge(let object):
                begin(key, of: item)
                try merge(object, patch, into: &scanner, item, &output)
            }
        }
        index = firstMembers[object]
        while index >= 0 {
            let member = members[index]
            index = member.next
            if member.isFound { continue }
            if case .remove = member.change { continue }
            begin(member.key, of: patch)
            append(member.change, patch, &output)
        }
        if separator == UInt8(ascii: "{") { output.append(separator) }
        output.append(UInt8(ascii: "}"))
    }

    /// Appends the value that a change creates where there was none.
    private func append(_ change: Change, _ patch: Span<UInt8>, _ output: inout [UInt8]) {
        switch change {
        case .remove: break
        case .replace(let value): output.append(patch.extracting(value.range))
        case .merge(let object): append(object, patch, &output)
        }
    }

    private func append(_ object: Int, _ patch: Span<UInt8>, _ output: inout [UInt8]) {
        output.append(UInt8(ascii: "{"))
        var isFirst = true
        var index = firstMembers[object]
        while index >= 0 {
            let member = members[index]
            index = member.next
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
