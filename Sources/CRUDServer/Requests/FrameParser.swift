import CRUDConfiguration
import CRUDJSON
import CRUDWire

/// Parses the frames of an event loop's sessions, one at a time, and keeps the memory of their requests for the next
/// one.
final class FrameParser {
    /// What a frame holds.
    enum Frame: ~Copyable {
        case request(Request)
        /// A batch array with these elements, which are to be parsed one by one.
        case array([JSONSlice])
    }

    // Not checked for exclusive access at run time, which a profile of reads shows: one thread uses them, and nothing
    // that is called during an access comes back to them.
    @exclusivity(unchecked) private var reader: RequestReader
    @exclusivity(unchecked) private var spare: Request?

    init(_ limits: Configuration.Limits) {
        reader = Self.reader(limits)
    }

    /// Follows other limits.
    func serve(_ limits: Configuration.Limits) { reader = Self.reader(limits) }

    private static func reader(_ limits: Configuration.Limits) -> RequestReader {
        RequestReader(maximumDepth: limits.jsonDepth, maximumElements: limits.batch)
    }

    /// - Parameter element: an element of a batch array, whose text has been parsed before; nil: the whole frame.
    /// - Throws: what the reply is instead of a result.
    func parse(_ text: Span<UInt8>, element: JSONSlice? = nil) throws(RequestError) -> Frame {
        var request = spare.take() ?? Request()
        do throws(RequestError) {
            if let element {
                try reader.read(element: element, of: text, into: &request)
            } else if case .array(let elements) = try reader.read(frame: text, into: &request) {
                recycle(request)
                return .array(elements)
            }
            return .request(request)
        } catch {
            recycle(request)
            throw error
        }
    }

    /// Takes back a request that has been executed.
    func recycle(_ request: consuming Request) { spare = consume request }
}
