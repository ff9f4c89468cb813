package import CRUDJSON

/// The part of an item that a caller has asked for: a tree of property names, made from dotted paths.
///
/// What comes out holds the named members only, nested as they were. A member that is not there is left out, and so is
/// an object around it that would be empty. Of members with one name the last one counts.
package struct FieldProjection {
    private var root = Node()

    private struct Node {
        /// The whole value is wanted, whatever is named beneath it.
        var isWhole = false
        var children: [Node] = []
        /// Where in `children` each name's node stands: a request may name a great many.
        var places: [[UInt8]: Int] = [:]
    }

    /// How many names of a path are told apart. An item nests at most 1000 deep, so that a path of more names than that
    /// leads nowhere, whatever follows; and a tree of bounded depth can be walked by recursion.
    private static let maximumNames = 1001

    /// Whether no member at all is wanted.
    package var isEmpty: Bool { root.children.isEmpty }

    package init() {}

    /// Adds a path: names joined by dots, `\.` for a dot and `\\` for a backslash in a name.
    ///
    /// - Throws: ``PathFault`` for a backslash before anything else.
    package mutating func insert(path: some Sequence<UInt8>) throws(PathFault) {
        var names: [[UInt8]] = [[]]
        var isEscaped = false
        for byte in path {
            if isEscaped {
                guard byte == UInt8(ascii: ".") || byte == UInt8(ascii: "\\") else { throw PathFault() }
                names[names.count - 1].append(byte)
                isEscaped = false
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: ".") {
                if names.count < Self.maximumNames { names.append([]) }
            } else {
                names[names.count - 1].append(byte)
            }
        }
        if isEscaped { throw PathFault() }
        Self.insert(names[...], into: &root)
    }

    /// A path in which a backslash stands before something that is neither a dot nor a backslash.
    package struct PathFault: Error {}

    private static func insert(_ names: ArraySlice<[UInt8]>, into node: inout Node) {
        guard let name = names.first else {
            node.isWhole = true
            return
        }
        let index = node.places[name] ?? node.children.count
        if index == node.children.count {
            node.children.append(Node())
            node.places[name] = index
        }
        insert(names.dropFirst(), into: &node.children[index])
    }

    /// Appends what is wanted of an item.
    ///
    /// - Throws: JSONSyntaxError where the item is no JSON.
    package func append(of item: Span<UInt8>, to output: inout [UInt8]) throws(JSONSyntaxError) {
        let value = JSONSlice(start: 0, end: item.count, kind: .object)
        if try !append(root, of: value, in: item, to: &output) { output.append(contentsOf: "{}".utf8) }
    }

    /// Appends the wanted members of an object; false, with nothing appended, where there are none.
    private func append(
        _ node: Node, of object: JSONSlice, in item: Span<UInt8>, to output: inout [UInt8]
    ) throws(JSONSyntaxError) -> Bool {
        var scanner = JSONScanner(at: object.start)
        guard try scanner.peekKind(item) == .object else { return false }
        var found = [(key: JSONSlice, value: JSONSlice)?](repeating: nil, count: node.children.count)
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(item, isFirst: &isFirst) {
            let value = try scanner.value(item)
            if let index = node.places[key.decodedString(item)] { found[index] = (key, value) }
        }
        let start = output.count
        for (index, member) in found.enumerated() {
            guard let member else { continue }
            let before = output.count
            output.append(output.count == start ? UInt8(ascii: "{") : UInt8(ascii: ","))
            output.append(item, member.key.range)
            output.append(UInt8(ascii: ":"))
            let child = node.children[index]
            if child.isWhole {
                output.append(item, member.value.range)
            } else if try !append(child, of: member.value, in: item, to: &output) {
                output.removeSubrange(before...)
            }
        }
        guard output.count > start else { return false }
        output.append(UInt8(ascii: "}"))
        return true
    }
}

extension [UInt8] {
    /// Appends a part of a text.
    fileprivate mutating func append(_ text: Span<UInt8>, _ range: Range<Int>) {
        for index in range { append(text[index]) }
    }
}
