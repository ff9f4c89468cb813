import CRUDModel
package import CRUDPluginABI

/// A call of a plugin that did not return CRUDD_OK.
package struct PluginFailure: Error, Sendable {
    /// `CRUDD_…`
    package var status: Int
    /// For the administrator: the log, and what only an administrator is shown.
    package var message: String
    /// A JSON pointer (RFC 6901) into the options, or empty.
    package var pointer: String

    package init(status: Int, message: String, pointer: String = "") {
        self.status = status
        self.message = message
        self.pointer = pointer
    }

    /// A file that must not be used is a final failure; one that could not be looked at is not.
    package init(_ error: PluginLoadingError) {
        self.init(
            status: error.kind == .system ? CRUDD_UNAVAILABLE : CRUDD_UNSUPPORTED, message: error.description)
    }

    /// Whether the options can never work.
    package var isAboutOptions: Bool { status == CRUDD_INVALID_OPTIONS }

    /// Whether there is not the storage that was expected, but none or another one. Somebody may put it back.
    package var isOfStorage: Bool { status == CRUDD_NOT_FOUND }

    /// Whether trying again is of no use.
    package var isFinal: Bool { status == CRUDD_INVALID_OPTIONS || status == CRUDD_UNSUPPORTED }
}

/// The place where a plugin says why a call failed, kept from call to call because it is large.
package struct FailureReport: ~Copyable {
    /// What the plugin is handed; zeroed before each call.
    package let pointer: UnsafeMutablePointer<crudd_failure>

    package init() {
        pointer = .allocate(capacity: 1)
        pointer.initialize(to: .sized())
    }

    deinit { pointer.deallocate() }

    /// Takes the report of a call that returned `status`, and makes ready for the next call.
    package func take(status: crudd_status) -> PluginFailure {
        let failure = PluginFailure(
            status: Int(status), message: Self.text(pointer.pointee.message),
            pointer: Self.text(pointer.pointee.pointer))
        pointer.initialize(to: .sized())
        return failure
    }

    /// Makes a call, and throws its failure.
    package func check(_ status: crudd_status) throws(PluginFailure) {
        if Int(status) != CRUDD_OK { throw take(status: status) }
    }

    /// The text in a C array of characters, up to its terminator or its end.
    private static func text<Characters>(_ characters: Characters) -> String {
        withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

extension crudd_failure {
    /// Says why a call failed, as far as there is room for it.
    package mutating func set(_ failure: PluginFailure) {
        Self.copy(failure.message, to: &message)
        Self.copy(failure.pointer, to: &pointer)
    }

    /// Copies a text into a C array of characters: as many whole characters as fit before its terminator.
    private static func copy<Characters>(_ text: String, to characters: inout Characters) {
        withUnsafeMutableBytes(of: &characters) { bytes in
            var size = 0
            for scalar in text.unicodeScalars {
                guard size + UTF8.width(scalar) < bytes.count else { break }
                size += UTF8.width(scalar)
            }
            bytes.copyBytes(from: text.utf8.prefix(size))
            bytes[size] = 0
        }
    }
}
