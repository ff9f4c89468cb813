import CRUDWire
import Testing

/// The text of `traceparent` as of <https://www.w3.org/TR/trace-context/#traceparent-header-field-values>.
@Suite struct TraceParentTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let span = "00f067aa0ba902b7"

    private func parsed(_ text: String) -> TraceParent? { TraceParent(Array(text.utf8).span) }

    @Test(arguments: ["00", "01", "ff", "a5"])
    func flagsAreKept(flags: String) {
        let parent = parsed("00-\(Self.trace)-\(Self.span)-\(flags)")
        #expect(parent?.traceID == Self.trace && parent?.spanID == Self.span)
        #expect(parent?.description == "00-\(Self.trace)-\(Self.span)-\(flags)")
    }

    @Test func zerosInFrontAreKept() {
        let text = "00-\(String(repeating: "0", count: 31))1-000000000000000f-00"
        #expect(parsed(text)?.description == text)
    }

    /// A later version may have more behind another dash; of version 00 nothing may follow.
    @Test(arguments: [("", true), ("-", true), ("-what the future will be like", true), (".", false), ("0", false)])
    func aLaterVersionMayBeLonger(rest: String, isValid: Bool) {
        let known = "-\(Self.trace)-\(Self.span)-01"
        for version in ["01", "cc", "fe"] {
            #expect(parsed(version + known + rest)?.description == (isValid ? version + known : nil))
        }
        #expect((parsed("00\(known)\(rest)") != nil) == rest.isEmpty)
    }

    @Test(
        arguments: [
            "", "00", "00-\(trace)-\(span)", "00-\(trace)-\(span)-", "00-\(trace)-\(span)-1", "ff-\(trace)-\(span)-01",
            "00-\(trace.uppercased())-\(span)-01", "00-\(trace)-\(span.uppercased())-01", "0X-\(trace)-\(span)-01",
            "00-\(trace)-\(span)-0A", "00_\(trace)-\(span)-01", "00-\(trace)_\(span)-01", "00-\(trace)-\(span)_01",
            "00-\(String(repeating: "0", count: 32))-\(span)-01", "00-\(trace)-0000000000000000-01",
            "00-\(trace.dropLast())-\(span)-011", "00-\(trace.dropLast())g-\(span)-01",
            "00-\(trace.dropLast())/-\(span)-01", "00-\(trace.dropLast()):-\(span)-01",
            "00-\(trace.dropLast())`-\(span)-01", " 00-\(trace)-\(span)-01",
            "00-\(trace.dropLast())é-\(span)-0", "00-\(trace)-\(span)-0\0",
        ] as [String])
    func otherTextsAreNone(text: String) {
        #expect(parsed(text) == nil)
    }
}
