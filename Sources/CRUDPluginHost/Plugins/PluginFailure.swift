package import CRUDModel
import CRUDPluginABI

/// A call of a plugin that did not answer CRUDD_OK.
package struct PluginFailure: Error, Sendable {
    package var status: Int
    /// For the administrator's log; never for a peer.
    package var message: String
    /// A JSON pointer into the options, or empty.
    package var pointer: String

    package init(status: Int, message: String, pointer: String) {
        self.status = status
        self.message = message
        self.pointer = pointer
    }

    /// A call that could not be made, or not be answered, now.
    init(unavailable message: String) {
        self.init(status: CRUDD_UNAVAILABLE, message: message, pointer: "")
    }

    /// Whether it is the options that can never work.
    package var isAboutOptions: Bool { status == CRUDD_INVALID_OPTIONS }

    /// Whether trying again is of no use.
    package var isFinal: Bool { status == CRUDD_INVALID_OPTIONS || status == CRUDD_UNSUPPORTED }
}

extension Backend {
    /// What a peer is told of a call or a mutation that the plugin answered with `status`.
    package func error(status: Int) -> CRUDError {
        switch status {
        case CRUDD_UNAVAILABLE: CRUDError(.unavailable, "backend \(name) is not available")
        case CRUDD_OUTCOME_UNKNOWN:
            CRUDError(.outcomeUnknown, "backend \(name) lost sight of the write; it may have been applied")
        case CRUDD_NO_SPACE: CRUDError(.noSpace, "backend \(name) is full")
        case CRUDD_CORRUPT: CRUDError(.corrupt, "backend \(name) cannot understand what it has stored")
        case CRUDD_UNSUPPORTED: CRUDError(.unsupported, "backend \(name) does not do this")
        default: CRUDError(.internalError, "backend \(name) failed; its reason is in the daemon's log")
        }
    }
}

/// The place where a plugin says why a call failed, kept from call to call because it is large.
struct FailureReport: ~Copyable {
    /// What the plugin is handed; zeroed before each call.
    let pointer: UnsafeMutablePointer<crudd_failure>

    init() {
        pointer = .allocate(capacity: 1)
        clear()
    }

    deinit { pointer.deallocate() }

    /// Takes the report of a call that answered `status`, and makes ready for the next call.
    func take(status: crudd_status) -> PluginFailure {
        let failure = PluginFailure(
            status: Int(status), message: Self.text(pointer.pointee.message),
            pointer: Self.text(pointer.pointee.pointer))
        clear()
        return failure
    }

    /// Makes a call, and throws its failure.
    func check(_ status: crudd_status) throws(PluginFailure) {
        if Int(status) != CRUDD_OK { throw take(status: status) }
    }

    private func clear() {
        pointer.initialize(to: crudd_failure())
        pointer.pointee.struct_size = UInt32(MemoryLayout<crudd_failure>.size)
    }

    /// The text in a C array of characters, up to its terminator or its end.
    private static func text<Characters>(_ characters: Characters) -> String {
        withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
