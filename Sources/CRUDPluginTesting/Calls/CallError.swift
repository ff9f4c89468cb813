import CRUDPluginABI

/// Why a call of a plugin did not return CRUDD_OK, or how it violated the contract.
package struct CallError: Error, Equatable, CustomStringConvertible {
    /// The status of a call that violated the contract itself.
    package static let violation = -1

    package let status: Int
    package let message: String
    /// A JSON pointer into the options, or empty.
    package let pointer: String

    package init(status: Int, message: String, pointer: String = "") {
        self.status = status
        self.message = message
        self.pointer = pointer
    }

    static func violation(_ message: String) -> CallError { CallError(status: violation, message: message) }

    /// Whether trying again is of no use.
    package var isFinal: Bool { status == CRUDD_INVALID_OPTIONS || status == CRUDD_UNSUPPORTED }

    package var description: String {
        if status == Self.violation { return message }
        return message.isEmpty ? StatusText.of(status) : "\(StatusText.of(status)), \"\(message)\""
    }

    /// Makes a call with a place for its failure, and checks what the plugin writes there and beside it.
    ///
    /// - Throws: the failure of the call.
    static func throwing(
        surplus: Int = 0, _ call: (UnsafeMutablePointer<crudd_failure>) -> crudd_status
    ) throws(CallError) {
        let place = FailurePlace(surplus: surplus)
        let status = Int(call(place.failure))
        guard !place.isOverrun else { throw violation("a failure was written beyond the end of crudd_failure") }
        guard status != CRUDD_OK else { return }
        guard StatusText.isKnown(status) else { throw violation("a call returned \(status), which is not a status") }
        guard let message = place.text(at: \.message), let pointer = place.text(at: \.pointer) else {
            throw violation("a text of crudd_failure is not terminated or not valid UTF-8")
        }
        throw CallError(status: status, message: message, pointer: pointer)
    }
}

/// A `crudd_failure` followed by guard bytes, which no plugin may touch.
private struct FailurePlace: ~Copyable {
    private static let guardBytes = 256
    private static let guardByte: UInt8 = 0xA5

    let failure: UnsafeMutablePointer<crudd_failure>
    private let memory: UnsafeMutableRawBufferPointer
    private let size: Int

    /// - Parameter surplus: by how many bytes the struct is longer than this package knows it.
    init(surplus: Int) {
        size = MemoryLayout<crudd_failure>.size + surplus
        memory = .allocate(byteCount: size + Self.guardBytes, alignment: MemoryLayout<crudd_failure>.alignment)
        memory.initializeMemory(as: UInt8.self, repeating: Self.guardByte)
        // The memory begins with a failure, whose size it has.
        failure = memory.baseAddress!.bindMemory(to: crudd_failure.self, capacity: 1)
        failure.initialize(to: crudd_failure())
        failure.pointee.struct_size = UInt32(size)
    }

    deinit { memory.deallocate() }

    var isOverrun: Bool { memory[size...].contains { $0 != Self.guardByte } }

    /// A text of the failure; nil if it is not terminated or not valid UTF-8.
    func text<Characters>(at path: KeyPath<crudd_failure, Characters>) -> String? {
        withUnsafeBytes(of: failure.pointee[keyPath: path]) { characters in
            guard let end = characters.firstIndex(of: 0) else { return nil }
            return String(validating: characters[..<end], as: UTF8.self)
        }
    }
}

/// The statuses, as the header spells them.
package enum StatusText {
    private static let names = [
        "CRUDD_OK", "CRUDD_NOT_FOUND", "CRUDD_EXISTS", "CRUDD_MISMATCH", "CRUDD_UNAVAILABLE", "CRUDD_OUTCOME_UNKNOWN",
        "CRUDD_NO_SPACE", "CRUDD_CORRUPT", "CRUDD_UNSUPPORTED", "CRUDD_INVALID_OPTIONS", "CRUDD_INTERNAL",
        "CRUDD_INTERRUPTED",
    ]

    static func isKnown(_ status: Int) -> Bool { names.indices.contains(status) }

    package static func of(_ status: Int) -> String { isKnown(status) ? names[status] : "status \(status)" }
}
