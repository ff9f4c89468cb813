import CRUDJSON
import CRUDModel

/// Reads a request of the most frequent form in one pass: one that concerns a single record by its id, without white
/// space around its members and without escapes outside of the item, in any order of the members.
///
/// It accepts nothing that ``RequestReader`` would not, and understands it alike; of any other text, valid or not, it
/// says nothing, and the general way is taken.
struct CompactRequest {
    private let text: UnsafeRawBufferPointer
    private var position = 0

    /// - Parameters:
    ///   - scanner: reads items and patches.
    ///   - maximumDepth: how deep these may nest.
    ///   - request: says nothing if the request has not been read.
    /// - Returns: whether the request has been read.
    static func read(
        _ text: Span<UInt8>, _ methods: borrowing [MethodTraits], _ scanner: inout JSONScanner, maximumDepth: Int,
        into request: inout Request
    ) -> Bool {
        request.reset()
        return text.withUnsafeBytes { bytes in
            var compact = CompactRequest(text: bytes)
            return compact.read(methods, text, &scanner, maximumDepth, into: &request)
        }
    }

    private init(text: UnsafeRawBufferPointer) {
        self.text = text
    }

    private mutating func read(
        _ methods: borrowing [MethodTraits], _ text: Span<UInt8>, _ scanner: inout JSONScanner, _ maximumDepth: Int,
        into request: inout Request
    ) -> Bool {
        var hasVersion = false
        var method: JSONSlice?
        guard take("{") else { return false }
        repeat {
            if !hasVersion, take(#""jsonrpc":"2.0""#) {
                hasVersion = true
            } else if request.id == nil, take(#""id":"#) {
                guard let id = identity() else { return false }
                request.id = id
            } else if method == nil, take(#""method":"#) {
                method = string(maximum: .max)
                if method == nil { return false }
            } else if request[.collection] == nil, take(#""params":{"#) {
                guard readParameters(text, &scanner, maximumDepth, into: &request) else { return false }
            } else if request.traceparent == nil, take(#""traceparent":"#) {
                guard let traceparent = string(maximum: .max) else { return false }
                request.traceparent = traceparent
            } else {
                return false
            }
        } while take(",")
        guard take("}"), position == self.text.count, hasVersion, !request.isNotification, let method,
            let row = methods.firstIndex(where: { method.equals($0.name, text) })
        else { return false }
        request.traits = methods[row]
        return request.hasParametersOfMethod
    }

    /// Reads the members of `params`, and the brace behind them; `collection` must be one of them.
    private mutating func readParameters(
        _ text: Span<UInt8>, _ scanner: inout JSONScanner, _ maximumDepth: Int, into request: inout Request
    ) -> Bool {
        repeat {
            let parameter: Parameter
            let value: JSONSlice?
            if take(#""collection":"#) {
                (parameter, value) = (.collection, string(maximum: Naming.maximumCollectionNameBytes))
            } else if take(#""id":"#) {
                (parameter, value) = (.id, string(maximum: Naming.maximumIDBytes))
            } else if take(#""item":"#) {
                (parameter, value) = (.item, self.value(text, &scanner, maximumDepth))
            } else if take(#""ifRevision":"#) {
                (parameter, value) = (.ifRevision, string(maximum: Naming.maximumRevisionBytes))
            } else if take(#""patch":"#) {
                (parameter, value) = (.patch, self.value(text, &scanner, maximumDepth))
            } else {
                return false
            }
            guard let value, request[parameter] == nil else { return false }
            request.set(parameter, value)
        } while take(",")
        return take("}") && request[.collection] != nil
    }

    /// Takes any value, up to a depth.
    private mutating func value(
        _ text: Span<UInt8>, _ scanner: inout JSONScanner, _ maximumDepth: Int
    ) -> JSONSlice? {
        scanner.reset(at: position)
        do throws(JSONSyntaxError) {
            let value = try scanner.value(text)
            position = scanner.position
            return value.depth <= maximumDepth ? value : nil
        } catch {
            return nil
        }
    }

    /// Takes a literal, if it comes next.
    @inline(__always)
    private mutating func take(_ literal: StaticString) -> Bool {
        let size = literal.utf8CodeUnitCount
        guard size <= text.count - position else { return false }
        // By words, of which the last two may overlap. What is loaded lies within the text, as was checked above, and
        // within the literal, whose bytes live as long as the process.
        let bytes = UnsafeRawPointer(literal.utf8Start)
        if size >= 8 {
            var offset = 0
            while offset < size {
                let place = min(offset, size - 8)
                let word = text.loadUnaligned(fromByteOffset: position + place, as: UInt64.self)
                guard word == bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self) else { return false }
                offset += 8
            }
        } else {
            for offset in 0..<size where text[position + offset] != (unsafe literal.utf8Start[offset]) { return false }
        }
        position += size
        return true
    }

    /// Takes a string of at least one byte and at most `maximum`, all of them printable ASCII.
    private mutating func string(maximum: Int) -> JSONSlice? {
        let start = position
        guard start < text.count, text[start] == UInt8(ascii: "\"") else { return nil }
        var end = start + 1
        while end < text.count {
            let byte = text[end]
            if byte == UInt8(ascii: "\"") { break }
            guard byte >= 0x20, byte < 0x7F, byte != UInt8(ascii: "\\") else { return nil }
            end += 1
        }
        let size = end - start - 1
        guard end < text.count, size > 0, size <= maximum else { return nil }
        position = end + 1
        return JSONSlice(start: start, end: position, kind: .string)
    }

    /// Takes the request's id: a string that is not empty, or a whole number.
    private mutating func identity() -> JSONSlice? {
        let start = position
        guard start < text.count else { return nil }
        if text[start] == UInt8(ascii: "\"") { return string(maximum: .max) }
        while position < text.count, text[position] &- UInt8(ascii: "0") < 10 { position += 1 }
        // A number with a leading zero is not valid.
        guard position > start, position == start + 1 || text[start] != UInt8(ascii: "0") else { return nil }
        return JSONSlice(start: start, end: position, kind: .number)
    }
}
