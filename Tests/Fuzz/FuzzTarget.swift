import CRUDJSON
import Glibc

/// Parses one input of libFuzzer, whose main function calls it. A bug is a trap, an error of the address sanitizer, or
/// a condition that does not hold.
///
/// - Returns: 0: the input may join the corpus.
/// - SeeAlso: <https://llvm.org/docs/LibFuzzer.html>
@_cdecl("LLVMFuzzerTestOneInput")
public func parseInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    // A copy on the heap, so that a read beyond its end is an error.
    FuzzTarget.selected.parse(Array(UnsafeBufferPointer(start: start, count: count)).span)
    return 0
}

/// A parser of what others send, store or write.
private enum FuzzTarget: String, CaseIterable {
    case requests
    case filters
    case propertyLists = "property-lists"
    case configurations
    case childFrames = "child-frames"

    /// The one that FUZZ_TARGET names.
    static let selected: FuzzTarget = {
        let name = getenv("FUZZ_TARGET").map { String(cString: $0) } ?? ""
        guard let target = FuzzTarget(rawValue: name) else {
            // Not started by `Tests/Fuzz/run`.
            fatalError("FUZZ_TARGET is one of \(allCases.map(\.rawValue))")
        }
        return target
    }()

    func parse(_ input: Span<UInt8>) {
        switch self {
        case .requests: RequestInput.parse(input)
        case .filters: FilterInput.parse(input)
        case .propertyLists: PropertyListInput.parse(input)
        case .configurations: ConfigurationInput.parse(input)
        case .childFrames: ChildFrameInput.parse(input)
        }
    }
}

/// Ends the program where a condition does not hold that must hold for every input.
func require(_ condition: Bool, _ message: @autoclosure () -> String) {
    if !condition { fatalError(message()) }
}

/// Requires that a text is one value of valid JSON.
func requireJSON(_ text: Span<UInt8>, _ what: String) {
    var scanner = JSONScanner()
    do throws(JSONSyntaxError) {
        _ = try scanner.document(text)
    } catch {
        fatalError("\(what) is not valid JSON: \(error.reason.rawValue) at byte \(error.offset)")
    }
}
