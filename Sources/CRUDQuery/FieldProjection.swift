package import CRUDJSON
package import CRUDModel

/// The part of an item that a caller asks for: a tree of member names, made from property paths.
///
/// The projection of an item has the named members only, nested as they were. A missing member is left out, and so is
/// an object around it that would be empty. Of members with one name the last one counts.
package struct FieldProjection: Sendable {
    private struct Node {
        /// The whole value is wanted, whatever is named beneath it.
        var isWhole = false
        var children: [Node] = []
        /// The position in `children` of each name's node: a request may have very many names.
        var positions: [[UInt8]: Int] = [:]
    }

    private var root = Node()
    /// The list of paths as it was given.
    let json: [UInt8]

    /// How many names of a path are told apart. An item nests at most 1000 deep, so that a longer path leads nowhere;
    /// and a tree of bounded depth can be traversed by recursion.
    private static let maximumNames = 1001

    /// Whether no member at all is wanted.
    package var isEmpty: Bool { root.children.isEmpty }

    /// - Parameter text: the parameter `fields`, an array of property paths.
    /// - Throws: `invalid_params` for anything else.
    package init(json text: Span<UInt8>) throws(CRUDError) {
        json = text.withUnsafeBufferPointer { Array($0) }
        let paths: [JSONSlice]
        do throws(JSONSyntaxError) {
            paths = try Self.elements(text)
        } catch {
            throw Self.error("must be an array of strings")
        }
        for path in paths {
            guard path.kind == .string else { throw Self.error("must be an array of strings") }
            guard let path = PropertyPath(utf8: path.decodedString(text)) else {
                throw Self.error("has a path with a backslash before neither a dot nor a backslash")
            }
            Self.insert(path.names.prefix(Self.maximumNames), into: &root)
        }
    }

    private static func elements(_ text: Span<UInt8>) throws(JSONSyntaxError) -> [JSONSlice] {
        var scanner = JSONScanner()
        guard try scanner.peekKind(text) == .array else {
            throw JSONSyntaxError(reason: .unexpectedByte, offset: scanner.position)
        }
        var elements: [JSONSlice] = []
        scanner.enter()
        var isFirst = true
        while try scanner.nextElement(text, isFirst: &isFirst) { elements.append(try scanner.value(text)) }
        try scanner.expectEnd(text)
        return elements
    }

    private static func error(_ message: String) -> CRUDError {
        .invalid("fields", message)
    }

    private static func insert(_ names: ArraySlice<String>, into node: inout Node) {
        guard let name = names.first.map({ Array($0.utf8) }) else {
            node.isWhole = true
            return
        }
        let index = node.positions[name] ?? node.children.count
        if index == node.children.count {
            node.children.append(Node())
            node.positions[name] = index
        }
        insert(names.dropFirst(), into: &node.children[index])
    }

    /// Appends the projection of an item.
    ///
    /// - Throws: `JSONSyntaxError` where the item is not valid JSON as far as it is looked at.
    package func append(of item: Span<UInt8>, to output: inout [UInt8]) throws(JSONSyntaxError) {
        var work = Work()
        try append(of: item, to: &output, &work)
    }

    /// As ``append(of:to:)``; throws where the work is stopped.
    package func append(
        of item: Span<UInt8>, to output: inout [UInt8], _ work: inout Work
    ) throws(JSONSyntaxError) {
        var scanner = JSONScanner()
        let members = try members(root, &scanner, item, &work)
        if !Self.append(members, item, to: &output) { output.append(contentsOf: "{}".utf8) }
    }

    /// A member that an item has.
    private struct Member {
        /// Its position among those that are wanted.
        var position: Int
        var key: JSONSlice
        var value: Value

        enum Value {
            case whole(JSONSlice)
            case part([Member])
        }
    }

    /// Scans the next value, an object, and finds the wanted members in it; of none if it is something else.
    private func members(
        _ node: Node, _ scanner: inout JSONScanner, _ item: Span<UInt8>, _ work: inout Work
    ) throws(JSONSyntaxError) -> [Member] {
        guard try scanner.peekKind(item, &work) == .object else {
            _ = try scanner.value(item, &work)
            return []
        }
        var found: [Int: Member] = [:]
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(item, isFirst: &isFirst, &work) {
            guard let position = node.positions[key.decodedString(item, &work)] else {
                _ = try scanner.value(item, &work)
                continue
            }
            let child = node.children[position]
            let value: Member.Value =
                child.isWhole
                ? .whole(try scanner.value(item, &work)) : .part(try members(child, &scanner, item, &work))
            found[position] = Member(position: position, key: key, value: value)
        }
        return found.values.sorted { $0.position < $1.position }
    }

    /// Appends an object; false, with nothing appended, where it would be empty.
    private static func append(_ members: [Member], _ item: Span<UInt8>, to output: inout [UInt8]) -> Bool {
        let start = output.count
        for member in members {
            let before = output.count
            output.append(output.count == start ? UInt8(ascii: "{") : UInt8(ascii: ","))
            output.append(item.extracting(member.key.range))
            output.append(UInt8(ascii: ":"))
            switch member.value {
            case .whole(let value): output.append(item.extracting(value.range))
            case .part(let members): if !append(members, item, to: &output) { output.removeSubrange(before...) }
            }
        }
        guard output.count > start else { return false }
        output.append(UInt8(ascii: "}"))
        return true
    }
}
