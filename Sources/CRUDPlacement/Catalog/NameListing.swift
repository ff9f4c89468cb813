package import CRUDJSON

/// The elements of a JSON array about all collections, by name: those that exist, and others that are named.
///
/// They are made part by part (``Catalog/Names``), and those of a part again only when it has changed.
package struct NameListing: Sendable {
    private struct Piece: Sendable {
        let version: UInt64
        /// Elements with commas between them.
        let text: [UInt8]
    }

    private var pieces: [Piece] = []
    /// The version of the names of which it is.
    private var version: UInt64?
    /// How many names have been looked at for it.
    package private(set) var visits = 0

    package init() {}

    /// What is to be in the array, to be joined by commas.
    package var texts: [[UInt8]] { pieces.map(\.text).filter { !$0.isEmpty } }

    /// Follows the names.
    ///
    /// - Parameters:
    ///   - others: more names, in their order: the same ones each time.
    ///   - element: writes what there is to say of a name, if anything.
    package mutating func follow(
        _ names: Catalog.Names, others: [[UInt8]], element: (_ name: [UInt8], _ list: inout JSONWriter) -> Void
    ) {
        guard version != names.version else { return }
        version = names.version
        let former = Dictionary(uniqueKeysWithValues: pieces.map { ($0.version, $0) })
        var others = others[...]
        pieces = names.parts.indices.map { index in
            let part = names.parts[index]
            let next = index + 1 < names.parts.count ? names.parts[index + 1].lowest : nil
            let end = next.map { next in others.firstIndex(fromSorted: { !$0.lexicographicallyPrecedes(next) }) }
            let inRange = others[..<(end ?? others.endIndex)]
            others = others[inRange.endIndex...]
            if let piece = former[part.version] { return piece }
            return Piece(version: part.version, text: text(of: part.names, inRange, element))
        }
    }

    private mutating func text(
        of existing: [[UInt8]], _ others: ArraySlice<[UInt8]>,
        _ element: (_ name: [UInt8], _ list: inout JSONWriter) -> Void
    ) -> [UInt8] {
        var others = others
        var writer = JSONWriter()
        var visits = 0
        func write(_ name: [UInt8], to list: inout JSONWriter) {
            visits += 1
            element(name, &list)
        }
        writer.array { list in
            for name in existing {
                while let first = others.first, first.lexicographicallyPrecedes(name) {
                    write(others.removeFirst(), to: &list)
                }
                if others.first == name { others.removeFirst() }
                write(name, to: &list)
            }
            for name in others { write(name, to: &list) }
        }
        self.visits += visits
        return Array(writer.bytes.dropFirst().dropLast())
    }
}
