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

    /// What a member of the patch counts beside the scans.
    private static let memberWork = 16

    private init() {}

    private static func take(_ bytes: Int, _ work: inout Work) throws(JSONSyntaxError) {
        guard work.take(bytes) else { throw JSONSyntaxError(reason: .stopped, offset: 0) }
    }

    /// The result of applying a patch.
    ///
    /// - Parameter item: the value it is applied to; a missing record's is `{}`.
    /// - Throws: JSONSyntaxError if either is not valid JSON.
    /// - SeeAlso: <https://www.rfc-editor.org/rfc/rfc7396>
    package static func apply(_ patch: Span<UInt8>, to item: Span<UInt8>) throws(JSONSyntaxError) -> [UInt8] {
        var work = Work()
        return try apply(patch, to: item, &work)
    }

    /// As ``apply(_:to:)``; throws where the work is stopped.
    package static func apply(
        _ patch: Span<UInt8>, to item: Span<UInt8>, _ work: inout Work
    ) throws(JSONSyntaxError) -> [UInt8] {
        var scanner = JSONScanner()
        var merge = MergePatch()
        let change = try merge.read(&scanner, patch, &work)
        try scanner.expectEnd(patch, &work)
        var output: [UInt8] = []
        output.reserveCapacity(item.count + patch.count)
        scanner.reset()
        switch change {
        case .remove:
            _ = try scanner.value(item, &work)
            output += "null".utf8
        case .replace(let value):
            _ = try scanner.value(item, &work)
            output.append(patch.extracting(value.range))
        case .merge(let object): try merge.merge(object, patch, into: &scanner, item, &output, &work)
        }
        try scanner.expectEnd(item, &work)
        return output
    }

    // MARK: The patch

    private mutating func read(
        _ scanner: inout JSONScanner, _ patch: Span<UInt8>, _ work: inout Work
    ) throws(JSONSyntaxError) -> Change {
        switch try scanner.peekKind(patch, &work) {
        case .object: break
        case .null:
            _ = try scanner.value(patch, &work)
            return .remove
        default: return .replace(try scanner.value(patch, &work))
        }
        let object = firstMembers.count
        firstMembers.append(-1)
        var last = -1
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(patch, isFirst: &isFirst, &work) {
            let (index, isNew) = names.insert(key, patch, of: object, &work)
            if isNew {
                members.append(Member(key: key, change: .remove))
                if last < 0 { firstMembers[object] = index } else { members[last].next = index }
                last = index
            }
            members[index].change = try read(&scanner, patch, &work)
        }
        return .merge(object)
    }

    // MARK: The item

    /// Appends the item's next value with the changes of an object of the patch.
    private mutating func merge(
        _ object: Int, _ patch: Span<UInt8>, into scanner: inout JSONScanner, _ item: Span<UInt8>,
        _ output: inout [UInt8], _ work: inout Work
    ) throws(JSONSyntaxError) {
        guard try scanner.peekKind(item, &work) == .object else {
            _ = try scanner.value(item, &work)
            return try append(object, patch, &output, &work)
        }
        var index = firstMembers[object]
        while index >= 0 {
            try Self.take(Self.memberWork, &work)
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
        while let key = try scanner.nextKey(item, isFirst: &isFirst, &work) {
            guard let index = names.index(of: key, item, in: object, &work) else {
                begin(key, of: item)
                output.append(item.extracting(try scanner.value(item, &work).range))
                continue
            }
            members[index].isFound = true
            switch members[index].change {
            case .remove: _ = try scanner.value(item, &work)
            case .replace(let value):
                _ = try scanner.value(item, &work)
                begin(key, of: item)
                output.append(patch.extracting(value.range))
            case .merge(let object):
                begin(key, of: item)
                try merge(object, patch, into: &scanner, item, &output, &work)
            }
        }
        index = firstMembers[object]
        while index >= 0 {
            try Self.take(Self.memberWork, &work)
            let member = members[index]
            index = member.next
            if member.isFound { continue }
            if case .remove = member.change { continue }
            begin(member.key, of: patch)
            try append(member.change, patch, &output, &work)
        }
        if separator == UInt8(ascii: "{") { output.append(separator) }
        output.append(UInt8(ascii: "}"))
    }

    /// Appends the value that a change creates where there was none.
    private func append(
        _ change: Change, _ patch: Span<UInt8>, _ output: inout [UInt8], _ work: inout Work
    ) throws(JSONSyntaxError) {
        switch change {
        case .remove: break
        case .replace(let value): output.append(patch.extracting(value.range))
        case .merge(let object): try append(object, patch, &output, &work)
        }
    }

    private func append(
        _ object: Int, _ patch: Span<UInt8>, _ output: inout [UInt8], _ work: inout Work
    ) throws(JSONSyntaxError) {
        output.append(UInt8(ascii: "{"))
        var isFirst = true
        var index = firstMembers[object]
        while index >= 0 {
            try Self.take(Self.memberWork, &work)
            let member = members[index]
            index = member.next
            if case .remove = member.change { continue }
            if !isFirst { output.append(UInt8(ascii: ",")) }
            isFirst = false
            output.append(patch.extracting(member.key.range))
            output.append(UInt8(ascii: ":"))
            try append(member.change, patch, &output, &work)
        }
        output.append(UInt8(ascii: "}"))
    }
}
