/// A place in a text file, as editors count it.
package struct SourcePosition: Sendable, Hashable, Comparable {
    /// From 1.
    package let line: Int
    /// From 1, in code points.
    package let column: Int

    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    /// Where a file begins.
    package static let start = SourcePosition(line: 1, column: 1)

    package static func < (left: SourcePosition, right: SourcePosition) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}
