package import CRUDJSON

/// Finds several properties of an item in one pass over its bytes.
///
/// The paths are stored as a tree of names. The pass enters only those objects that a path leads through and skips
/// everything else; only names with escapes are decoded. Of repeated members the last one counts, with its contents:
/// what was found before is forgotten, which costs no more than it took to find it.
package struct PropertyFinder: ~Copyable {
    private struct Node {
        /// The range of its edges in `edges`, sorted by name.
        var edges = 0..<0
        /// Where its value is stored, if a path ends here; else −1.
        var slot = -1
        /// Whether the item has it.
        var isFound = false
        /// Those of its children that the item has are a list; −1 is its end.
        var firstFound = -1
        var nextFound = -1
    }

    private struct Edge {
        /// The range of its name in `names`.
        var name: Range<Int>
        var node: Int
    }

    private var nodes: [Node] = [Node()]
    private var edges: [Edge] = []
    private var names: [UInt8] = []
    /// For each path its slot; −1 for one that no item can have.
    private var slots: [Int] = []
    private var values: [JSONSlice] = []
    private var scanner = JSONScanner()

    /// Items nest at most 1000 deep, so that no item has a property with a longer path. Hence recursion over the tree
    /// is safe.
    private static let maximumNames = 1001

    private static let missing = JSONSlice(start: 0, end: 0, kind: .null)

    package init(_ paths: [PropertyPath]) {
        var root = PathTree()
        for (index, path) in paths.enumerated() where path.names.count <= Self.maximumNames {
            root.insert(path.names.map { Array($0.utf8) }[...], index)
        }
        slots = [Int](repeating: -1, count: paths.count)
        flatten(root, into: 0)
    }

    /// The tree while it is built.
    private struct PathTree {
        var children: [[UInt8]: PathTree] = [:]
        /// The paths that end here.
        var paths: [Int] = []

        mutating func insert(_ names: ArraySlice<[UInt8]>, _ path: Int) {
            guard let name = names.first else { return paths.append(path) }
            children[name, default: PathTree()].insert(names.dropFirst(), path)
        }
    }

    private mutating func flatten(_ tree: PathTree, into node: Int) {
        if !tree.paths.isEmpty {
            nodes[node].slot = values.count
            for path in tree.paths { slots[path] = values.count }
            values.append(Self.missing)
        }
        let children = tree.children.sorted { left, right in
            left.key.count != right.key.count
                ? left.key.count < right.key.count : left.key.lexicographicallyPrecedes(right.key)
        }
        let firstEdge = edges.count
        for child in children {
            edges.append(Edge(name: names.count..<names.count + child.key.count, node: nodes.count))
            names += child.key
            nodes.append(Node())
        }
        nodes[node].edges = firstEdge..<edges.count
        for (edge, child) in zip(nodes[node].edges, children) { flatten(child.value, into: edges[edge].node) }
    }

    // MARK: Finding

    /// The value that the last ``find(in:_:)`` has found for the path at an index; null if it is missing.
    package subscript(path: Int) -> JSONSlice {
        slots[path] < 0 ? Self.missing : values[slots[path]]
    }

    /// Scans an item and stores where the properties are.
    ///
    /// - Throws: JSONSyntaxError if the item is not valid JSON.
    package mutating func find(in item: Span<UInt8>) throws(JSONSyntaxError) {
        var work = Work()
        try find(in: item, &work)
    }

    /// Scans an item and stores where the properties are; what is stored means nothing where the work has been stopped.
    ///
    /// - Throws: JSONSyntaxError if the item is not valid JSON, or the work has been stopped.
    package mutating func find(in item: Span<UInt8>, _ work: inout Work) throws(JSONSyntaxError) {
        forgetChildren(of: 0)
        scanner.reset()
        if try scanner.peekKind(item, &work) == .object, !nodes[0].edges.isEmpty {
            try find(0, in: item, &work)
        } else {
            _ = try scanner.value(item, &work)
        }
        try scanner.expectEnd(item, &work)
    }

    /// Scans the next value, an object.
    private mutating func find(
        _ node: Int, in item: Span<UInt8>, _ work: inout Work
    ) throws(JSONSyntaxError) {
        let edges = nodes[node].edges
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(item, isFirst: &isFirst, &work) {
            guard let child = child(edges, key, item, &work) else {
                _ = try scanner.value(item, &work)
                continue
            }
            note(child, in: node)
            let value: JSONSlice
            if try scanner.peekKind(item, &work) == .object, !nodes[child].edges.isEmpty {
                let start = scanner.position
                try find(child, in: item, &work)
                value = JSONSlice(start: start, end: scanner.position, kind: .object)
            } else {
                value = try scanner.value(item, &work)
            }
            if nodes[child].slot >= 0 { values[nodes[child].slot] = value }
        }
    }

    /// Notes that a node's object has a member; what a member with the same name had is forgotten.
    private mutating func note(_ child: Int, in node: Int) {
        if nodes[child].isFound { return forgetChildren(of: child) }
        nodes[child].isFound = true
        nodes[child].nextFound = nodes[node].firstFound
        nodes[node].firstFound = child
    }

    private mutating func forgetChildren(of node: Int) {
        var child = nodes[node].firstFound
        nodes[node].firstFound = -1
        while child >= 0 {
            nodes[child].isFound = false
            if nodes[child].slot >= 0 { values[nodes[child].slot] = Self.missing }
            forgetChildren(of: child)
            child = nodes[child].nextFound
        }
    }

    private func child(
        _ edges: Range<Int>, _ key: JSONSlice, _ item: Span<UInt8>, _ work: inout Work
    ) -> Int? {
        guard key.hasEscapes else { return child(edges, key.content, item) }
        let name = key.decodedString(item, &work)
        return child(edges, 0..<name.count, name.span)
    }

    /// Searches for a name among edges, which are sorted by length and then by bytes.
    private func child(_ edges: Range<Int>, _ name: Range<Int>, _ text: Span<UInt8>) -> Int? {
        var (low, high) = (edges.lowerBound, edges.upperBound)
        while low < high {
            let middle = (low + high) / 2
            let order = compare(name, text, with: self.edges[middle].name)
            if order == 0 { return self.edges[middle].node }
            if order < 0 { high = middle } else { low = middle + 1 }
        }
        return nil
    }

    private func compare(_ name: Range<Int>, _ text: Span<UInt8>, with other: Range<Int>) -> Int {
        if name.count != other.count { return name.count - other.count }
        for offset in 0..<name.count {
            let difference = Int(text[name.lowerBound + offset]) - Int(names[other.lowerBound + offset])
            if difference != 0 { return difference }
        }
        return 0
    }
}
