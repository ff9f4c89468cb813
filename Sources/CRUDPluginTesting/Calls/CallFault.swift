import CRUDPluginABI

/// Why a call of a plugin did not answer CRUDD_OK, or how it broke the contract.
package struct CallFault: Error, Equatable, CustomStringConvertible {
    /// The status of a call that broke the contract itself.
    package static let breach = -1

    package let status: Int
    package let message: String
    package let pointer: String

    package init(status: Int, message: String, pointer: String = "") {
        self.status = status
        self.message = message
        self.pointer = pointer
    }

    static func breach(_ message: String) -> CallFault { CallFault(status: breach, message: message) }

    /// Whether trying again is of no use.
    package var isFinal: Bool { status == CRUDD_INVALID_OPTIONS || status == CRUDD_UNSUPPORTED }

    package var description: String {
        if status == Self.breach { return message }
        return message.isEmpty ? StatusText.of(status) : "\(StatusText.of(status)), \"\(message)\""
    }

    /// Makes a call with a place for its failure, and minds what the plugin writes there and beside it.
    static func throwing(_ call: (UnsafeMutablePointer<crudd_failure>) -> crudd_status) throws(CallFault) {
        let place = FailurePlace()
        let status = Int(call(place.failure))
        guard !place.isOverrun else { throw breach("a failure was written beyond the end of crudd_failure") }
        guard status != CRUDD_OK else { return }
        guard StatusText.isKnown(status) else { throw breach("a call answered the status \(status), which is none") }
        guard let message = place.text(at: \.message), let pointer = place.text(at: \.pointer) else {
            throw breach("a text of crudd_failure is not terminated or no UTF-8")
        }
        throw CallFault(status: status, message: message, pointer: pointer)
    }
}

/// A `crudd_failure` with a strip of known bytes behind it, which nobody may touch.
private struct FailurePlace: ~Copyable {
    private static let guardBytes = 4096
    private static let guardByte: UInt8 = 0xA5

    let failure: UnsafeMutablePointer<crudd_failure>
    private let memory: UnsafeMutableRawBufferPointer

    init() {
        memory = .allocate(
            byteCount: MemoryLayout<crudd_failure>.size + Self.guardBytes,
            alignment: MemoryLayout<crudd_failure>.alignment)
        memory.initializeMemory(as: UInt8.self, repeating: Self.guardByte)
        // The memory begins with a failure, whose size it has.
        failure = memory.baseAddress!.bindMemory(to: crudd_failure.self, capacity: 1)
        failure.initialize(to: crudd_failure())
        failure.pointee.struct_size = UInt32(MemoryLayout<crudd_failure>.size)
    }

    deinit { memory.deallocate() }

    var isOverrun: Bool { memory[MemoryLayout<crudd_failure>.size...].contains { $0 != Self.guardByte } }

    /// A text of the failure; nil if it has no end or is no UTF-8.
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
    ]

    static func isKnown(_ status: Int) -> Bool { names.indices.contains(status) }

    package static func of(_ status: Int) -> String { isKnown(status) ? names[status] : "status \(status)" }
}

/// Lends the bytes of a text to a call.
func withBytes<Result>(of text: String, _ body: (crudd_bytes) -> Result) -> Result {
    withBytes(of: Array(text.utf8), body)
}

func withBytes<Result>(of bytes: [UInt8], _ body: (crudd_bytes) -> Result) -> Result {
    bytes.withUnsafeBufferPointer { body(crudd_bytes(data: $0.baseAddress, size: $0.count)) }
}

extension crudd_bytes {
    var array: [UInt8] { Array(UnsafeBufferPointer(start: data, count: size)) }
    /// What is no UTF-8 becomes U+FFFD.
    var text: String { String(decoding: UnsafeBufferPointer(start: data, count: size), as: UTF8.self) }
}
