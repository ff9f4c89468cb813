import Glibc

/// The form of a successful reply: its length, and bytes at fixed offsets, so that it need not be parsed.
enum ReplyFormat {
    /// A frame; its JSON begins with `before`, ten digits of the request's tag, and `after` or that of a failure.
    case framed(before: [UInt8], after: [UInt8], failures: [Failure] = [])
    /// A reply of constant length and beginning; replies come in the order of the requests.
    case fixed(beginning: [UInt8], length: Int)

    struct Reply {
        let length: Int
        /// The tag of the request; nil if only the order identifies it.
        let tag: UInt64?
        /// Nil for a success.
        var failure: FailureCode?
    }

    /// The errors that a run may allow, by the protocol's codes.
    enum FailureCode: Int, CaseIterable {
        case unavailable = -32008
        case outcomeUnknown = -32009
    }

    /// The form of an allowed error.
    struct Failure {
        let code: FailureCode
        let after: [UInt8]

        init(_ code: FailureCode) {
            self.code = code
            after = Array(#","error":{"code":\#(code.rawValue),"#.utf8)
        }
    }

    init(_ workload: Workload) {
        let id = #"{"jsonrpc":"2.0","id":"#
        switch (workload.language, workload.operation) {
        case (.crudd, .query):
            self = .framed(before: Array(id.utf8), after: Array(#","result":{"records":[{"id""#.utf8))
        case (.crudd, .scan):
            self = .framed(before: Array(id.utf8), after: Array(#","result":{"count":0}"#.utf8))
        case (.crudd, .read), (.crudd, .increment):
            self = .framed(before: Array(id.utf8), after: Array(#","result":{"#.utf8))
        case (.crudd, .create), (.crudd, .upsert):
            self = .framed(
                before: Array(id.utf8), after: Array(#","result":{"revision":"#.utf8),
                failures: workload.mayFail ? FailureCode.allCases.map(Failure.init) : [])
        case (.echo, _):
            self = .framed(before: Array(id.utf8), after: Array(#","method":"#.utf8))
        case (.resp, .create), (.resp, .upsert):
            self = .fixed(beginning: Array("+OK\r\n".utf8), length: 5)
        case (.resp, _):
            let head = "$\(workload.valueBytes)\r\n"
            self = .fixed(beginning: Array(head.utf8), length: head.utf8.count + workload.valueBytes + 2)
        }
    }

    /// The reply at the beginning of `input`; nil if it is incomplete.
    ///
    /// - Throws: ``BenchError`` with the beginning of the reply if it is not a success.
    func parse(_ input: UnsafeRawBufferPointer) throws -> Reply? {
        switch self {
        case .fixed(let beginning, let length):
            guard input.count >= beginning.count else {
                // An error of RESP may be shorter.
                guard input.matches(beginning.prefix(input.count), at: 0) else { throw Self.unexpected(input) }
                return nil
            }
            guard input.matches(beginning[...], at: 0) else { throw Self.unexpected(input) }
            return input.count >= length ? Reply(length: length, tag: nil) : nil
        case .framed(let before, let after, let failures):
            guard input.count >= 4 else { return nil }
            let length = 4 + Int(UInt32(bigEndian: input.loadUnaligned(as: UInt32.self)))
            guard input.count >= length else { return nil }
            let frame = UnsafeRawBufferPointer(rebasing: input[..<length])
            let tagOffset = 4 + before.count
            let afterOffset = tagOffset + RequestTemplate.digits
            let failure = failures.first { frame.matches($0.after[...], at: afterOffset) }
            guard frame.matches(before[...], at: 4), failure != nil || frame.matches(after[...], at: afterOffset) else {
                throw Self.unexpected(UnsafeRawBufferPointer(rebasing: frame[4...]))
            }
            var tag: UInt64 = 0
            for offset in tagOffset..<tagOffset + RequestTemplate.digits {
                tag = tag &* 10 &+ UInt64(input[offset] &- UInt8(ascii: "0"))
            }
            return Reply(length: length, tag: tag, failure: failure?.code)
        }
    }

    private static func unexpected(_ reply: UnsafeRawBufferPointer) -> BenchError {
        BenchError("not a success: \(String(decoding: reply.prefix(400), as: UTF8.self))")
    }
}

extension UnsafeRawBufferPointer {
    /// Whether `marker` is at `offset`.
    fileprivate func matches(_ marker: ArraySlice<UInt8>, at offset: Int) -> Bool {
        guard offset + marker.count <= count else { return false }
        return marker.withUnsafeBytes { Self.areEqual(self.baseAddress?.advanced(by: offset), $0) }
    }

    /// Whether `text` contains these bytes.
    func isWithin(_ text: UnsafeRawBufferPointer) -> Bool {
        guard count <= text.count else { return false }
        return (0...text.count - count).contains { Self.areEqual(text.baseAddress?.advanced(by: $0), self) }
    }

    private static func areEqual(_ address: UnsafeRawPointer?, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let address, let other = bytes.baseAddress else { return bytes.isEmpty }
        return memcmp(address, other, bytes.count) == 0
    }
}
