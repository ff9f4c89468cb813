package import CRUDJSON

/// Finds several properties of an item in one pass over its bytes.
///
/// The paths are stored as a tree of names. The pass enters only those objects that a path leads through and skips
/// everything else; only names with escapes are decoded. Of repeated members the last one counts, with its contents.
package struct PropertyFinder: ~Copyable {
    private struct Node {
        /// The range of its edges in `edges`, sorted by name.
        var edges = 0..<0
        /// Its own slot, if it has one, followed by those of its descendants.
        var slots = 0..<0
        /// Whether a path ends here; then the first of `slots` is its own.
        var isWanted = false
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
        nodes[0].slots = 0..<values.count
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
        let firstSlot = values.count
        if !tree.paths.isEmpty {
            nodes[node].isWanted = true
            for path in tree.paths { slots[path] = firstSlot }
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
        nodes[node].slots = firstSlot..<values.count
    }

    // MARK: Finding

    /// The value that the last ``find(in:)`` has found for the path at an index; null if it is missing.
    package subscript(path: Int) -> JSONSlice {
        slots[path] < 0 ? Self.missing : values[slots[path]]
    }

    /// Scans an item and stores where the properties are.
    ///
    /// - Throws: JSONSyntaxError if the item is not valid JSON.
    package mutating func find(in item: Span<UInt8>) throws(JSONSyntaxError) {
        for slot in values.indices { values[slot] = Self.missing }
        scanner.reset()
        if try scanner.peekKind(item) == .object, !nodes[0].edges.isEmpty {
            try find(0, in: item)
        } else {
            _ = try scanner.value(item)
        }
        try scanner.expectEnd(item)
    }

    /// Scans the next value, an object.
    private mutating func find(_ node: Int, in item: Span<UInt8>) throws(JSONSyntaxError) {
        let edges = nodes[node].edges
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(item, isFirst: &isFirst) {
            guard let child = child(edges, key, item) else {
                _ = try scanner.value(item)
                continue
            }
            let slots = nodes[child].slots
            for slot in slots { values[slot] = Self.missing }
            let value: JSONSlice
            if try scanner.peekKind(item) == .object, !nodes[child].edges.isEmpty {
                let start = scanner.position
                try find(child, in: item)
                value = JSONSlice(start: start, end: scanner.position, kind: .object)
            } else {
                value = try scanner.value(item)
            }
            if nodes[child].isWanted { values[slots.lowerBound] = value }
        }
    }

    private func child(_ edges: Range<Int>, _ key: JSONSlice, _ item: Span<UInt8>) -> Int? {
        guard key.hasEscapes else { return child(edges, key.content, item) }
        let name = key.decodedString(item)
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
