package import CRUDModel

/// One error of a configuration, and where it is.
package struct ConfigurationDiagnostic: Error, Sendable, Hashable {
    /// The path as the caller gave it.
    package let file: String
    package let position: SourcePosition
    /// One line, for the person who edits the file.
    package let message: String
    /// What it is due to.
    package let kind: SystemErrorKind

    package init(
        file: String, position: SourcePosition, message: String, kind: SystemErrorKind = .configuration
    ) {
        self.file = file
        self.position = position
        self.message = message
        self.kind = kind
    }

    /// From 1.
    package var line: Int { position.line }
    /// From 1, in code points.
    package var column: Int { position.column }
}

extension ConfigurationDiagnostic: CustomStringConvertible {
    /// `FILE:LINE:COLUMN: message`, which editors and terminals make clickable.
    package var description: String { "\(file):\(line):\(column): \(message)" }
}

/// A configuration that cannot be used: all of its errors.
package struct InvalidConfiguration: Error, Sendable {
    /// At least one, in the order of the file.
    package let diagnostics: [ConfigurationDiagnostic]
    /// The file with only those backends that have no error, so that their plugins can be checked in the same run; nil
    /// where nothing of it could be decoded.
    package let remainder: Configuration?
    /// What they are due to: to the system where all are, so that no other configuration would help.
    package var kind: SystemErrorKind { diagnostics.allSatisfy { $0.kind == .system } ? .system : .configuration }

    package init(_ diagnostics: [ConfigurationDiagnostic], remainder: Configuration? = nil) {
        self.diagnostics = diagnostics.sorted { $0.position < $1.position }
        self.remainder = remainder
    }
}

extension InvalidConfiguration: CustomStringConvertible {
    /// One line for each diagnostic.
    package var description: String { diagnostics.map(\.description).joined(separator: "\n") }
}
