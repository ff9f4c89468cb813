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

/// One thing wrong with a configuration, and where.
package struct ConfigurationFault: Error, Sendable, Hashable {
    /// The path as the caller gave it.
    package let file: String
    package let position: SourcePosition
    /// One line, for the person who edits the file.
    package let message: String

    package init(file: String, position: SourcePosition, message: String) {
        self.file = file
        self.position = position
        self.message = message
    }

    /// From 1.
    package var line: Int { position.line }
    /// From 1, in code points.
    package var column: Int { position.column }
}

extension ConfigurationFault: CustomStringConvertible {
    /// `FILE:LINE:COLUMN: message`, the form that editors and terminals make clickable.
    package var description: String { "\(file):\(line):\(column): \(message)" }
}

/// A configuration that cannot be used: everything wrong with it.
package struct InvalidConfiguration: Error, Sendable {
    /// At least one, in the order of the file.
    package let faults: [ConfigurationFault]

    package init(_ faults: [ConfigurationFault]) {
        self.faults = faults.sorted { $0.position < $1.position }
    }
}

extension InvalidConfiguration: CustomStringConvertible {
    /// One line for each fault.
    package var description: String { faults.map(\.description).joined(separator: "\n") }
}
