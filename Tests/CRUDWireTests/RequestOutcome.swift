import CRUDJSON
import CRUDModel
import CRUDWire

/// The outcome of reading a frame, or an element of a batch array; texts as they were sent.
enum RequestOutcome: Equatable {
    case request(method: Method, id: String?, parameters: [String])
    case array(Int)
    case error(CRUDError.Code, id: String?, member: String?, isNotification: Bool)
}

/// Reads frames one after another, as a session does.
struct FrameReading: ~Copyable {
    private var reader: RequestReader
    private var request = Request()

    init(maximumDepth: Int = 128, maximumElements: Int = 1000) {
        reader = RequestReader(maximumDepth: maximumDepth, maximumElements: maximumElements)
    }

    mutating func read(_ text: String) -> RequestOutcome {
        let bytes = Array(text.utf8)
        do throws(RequestError) {
            switch try reader.read(frame: bytes.span, into: &request) {
            case .request: return outcome(bytes)
            case .array(let elements): return .array(elements.count)
            }
        } catch {
            return Self.outcome(error, bytes)
        }
    }

    /// The trace of the request that was read last.
    func traceParent(_ text: String) -> TraceParent? { request.traceParent(Array(text.utf8).span) }

    /// Reads a frame that is a batch array, and each of its elements.
    mutating func read(array text: String) -> [RequestOutcome] {
        let bytes = Array(text.utf8)
        guard case .array(let elements) = try? reader.read(frame: bytes.span, into: &request) else { return [] }
        var outcomes: [RequestOutcome] = []
        for element in elements {
            do throws(RequestError) {
                try reader.read(element: element, of: bytes.span, into: &request)
                outcomes.append(outcome(bytes))
            } catch {
                outcomes.append(Self.outcome(error, bytes))
            }
        }
        return outcomes
    }

    private func outcome(_ bytes: [UInt8]) -> RequestOutcome {
        var parameters: [String] = []
        for parameter in Parameter.allCases {
            if let slice = request[parameter] { parameters.append(Self.text(slice, bytes)) }
        }
        return .request(method: request.method, id: request.id.map { Self.text($0, bytes) }, parameters: parameters)
    }

    private static func outcome(_ error: RequestError, _ bytes: [UInt8]) -> RequestOutcome {
        .error(
            error.error.code, id: error.id.map { text($0, bytes) }, member: error.error.details.member,
            isNotification: error.isNotification)
    }

    private static func text(_ slice: JSONSlice, _ bytes: [UInt8]) -> String {
        String(decoding: bytes[slice.range], as: UTF8.self)
    }
}

/// Reads one frame.
func read(_ text: String, maximumDepth: Int = 128) -> RequestOutcome {
    var reading = FrameReading(maximumDepth: maximumDepth)
    return reading.read(text)
}
