/// One entry of `backends`: which plugin, where it runs, and what it is told.
package struct BackendConfiguration: Sendable {
    /// What answers for the backend.
    package enum Implementation: Sendable, Hashable {
        /// A shared library: a bare name that stands for `DIRECTORY/NAME.so`, or an absolute path beneath one of the
        /// plugin directories (by its text: links are the loader's to judge).
        case plugin(String)
        /// An executable, absolute path first, with its arguments.
        case command([String])
    }

    /// Where a plugin runs.
    package enum Isolation: String, Sendable, CaseIterable {
        /// In the daemon.
        case inline
        /// In a supervised child process.
        case process
    }

    /// What a child process is held to.
    package struct Limits: Sendable, Hashable {
        /// The most memory in bytes; nil: no limit.
        package var memoryBytes: Int?
        /// The longest that one call may take; nil: no limit.
        package var callTimeout: Duration?
    }

    /// 1 to 128 bytes of UTF-8 without control characters.
    package let name: String
    package let implementation: Implementation
    /// Always ``Isolation/process`` for a command.
    package let isolation: Isolation
    /// Empty for an inline backend.
    package let limits: Limits
    /// The digest that the plugin file, or the command's first word, must have: 64 hexadecimal digits, lower-case.
    package let sha256: String?
    /// What the plugin is told: a JSON object, as UTF-8; `{}` where the file says nothing.
    package let options: [UInt8]
    /// Where the backend's name stands in the file.
    package let position: SourcePosition
    /// Where its plugin or command is named: the place for a fault of the plugin file itself.
    package let implementationPosition: SourcePosition
    /// The options as they stand in the file, for the positions.
    let optionsNode: YAMLNode?

    /// Where the option that a JSON Pointer names stands in the file: the value; of a value that is not there, the
    /// nearest container that is. Without options in the file, the backend's own position.
    ///
    /// Source: [RFC 6901](https://www.rfc-editor.org/rfc/rfc6901).
    package func position(ofOption pointer: String) -> SourcePosition {
        guard var node = optionsNode else { return position }
        for token in pointer.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst() {
            guard let child = node.child(Self.unescaped(token)) else { break }
            node = child
        }
        return node.position
    }

    /// A reference token with `~1` and `~0` understood.
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
