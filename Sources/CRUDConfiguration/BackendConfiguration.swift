package import CRUDModel

/// One entry of `backends`: which plugin, in which process, with which options.
package struct BackendConfiguration: Sendable {
    /// What implements the backend.
    package enum Implementation: Sendable, Hashable {
        /// A shared library: a bare name that stands for `DIRECTORY/NAME.so`, or an absolute path beneath one of the
        /// plugin directories (by its text: the loader checks links).
        case plugin(String)
        /// An executable, absolute path first, with its arguments.
        case command([String])
    }

    /// Where a plugin runs.
    package enum Isolation: String, Sendable, CaseIterable {
        /// In the daemon.
        case inline
        /// In a child process.
        case process
    }

    /// The limits of a child process.
    package struct Limits: Sendable, Hashable {
        /// The most memory in bytes; nil: no limit.
        package var memoryBytes: Int?
        /// How long one call may take; nil: no limit.
        package var callTimeout: Duration?
    }

    /// 1 to 128 bytes of UTF-8 without control characters.
    package let name: String
    package let implementation: Implementation
    /// Always ``Isolation/process`` for a command.
    package let isolation: Isolation
    /// Whether its records may be cached.
    package let cachesRecords: Bool
    /// Empty for an inline backend.
    package let limits: Limits
    /// The digest that the plugin file, or the command's first word, must have: 64 hexadecimal digits, lower-case.
    package let sha256: String?
    /// The plugin's options: a JSON object, as UTF-8; `{}` where the file gives none.
    package let options: [UInt8]
    /// Where the backend's name is in the file.
    package let position: SourcePosition
    /// Where its plugin or command is named: the position of errors of the plugin file itself.
    package let implementationPosition: SourcePosition
    /// The options as they are written in the file, for their positions.
    let optionsNode: YAMLNode?

    /// Where the value of the option that a JSON Pointer names is in the file; if the file lacks it, the innermost
    /// container that it has; if it has no options at all, the backend's own position.
    ///
    /// Source: [RFC 6901](https://www.rfc-editor.org/rfc/rfc6901).
    package func position(ofOption pointer: String) -> SourcePosition {
        guard var node = optionsNode else { return position }
        for token in Self.tokens(of: pointer) {
            guard let child = node.child(Self.unescaped(token)) else { break }
            node = child
        }
        return node.position
    }

    /// The value of the option that a JSON Pointer names, as it is written; nil if the file lacks it, and for a list or
    /// a mapping.
    package func text(ofOption pointer: String) -> [UInt8]? {
        var node = optionsNode
        for token in Self.tokens(of: pointer) { node = node?.child(Self.unescaped(token)) }
        guard case .scalar(let text, _) = node?.content else { return nil }
        return text
    }

    private static func tokens(of pointer: String) -> ArraySlice<Substring.UTF8View> {
        pointer.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst()
    }

    /// A reference token with `~1` and `~0` decoded.
    private static func unescaped(_ token: Substring.UTF8View) -> [UInt8] {
        var bytes: [UInt8] = []
        var isEscaped = false
        for byte in token {
            switch (isEscaped, byte) {
            case (true, UInt8(ascii: "1")): bytes[bytes.count - 1] = UInt8(ascii: "/")
            case (true, UInt8(ascii: "0")): break
            default: bytes.append(byte)
            }
            isEscaped = byte == UInt8(ascii: "~")
        }
        return bytes
    }
}
