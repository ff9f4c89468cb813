import CRUDJSON
import CRUDModel

/// Reads a request of the most frequent form in one pass: one that names a collection and an id and nothing else, as
/// reads and deletes do, without white space and escapes, in any order of the members.
///
/// It accepts nothing that ``RequestReader`` would not, and understands it alike; of any other text, valid or not, it
/// says nothing, and the general way is taken.
struct CompactRequest {
    private let text: UnsafeRawBufferPointer
    private var position = 0

    /// - Returns: whether the request has been read.
    static func read(
        _ text: Span<UInt8>, _ methods: borrowing [MethodTraits], into request: inout Request
    ) -> Bool {
        text.withUnsafeBytes { bytes in
            var compact = CompactRequest(text: bytes)
            return compact.read(methods, text, into: &request)
        }
    }

    private init(text: UnsafeRawBufferPointer) {
        self.text = text
    }

    private mutating func read(
        _ methods: borrowing [MethodTraits], _ text: Span<UInt8>, into request: inout Request
    ) -> Bool {
        var hasVersion = false
        var (id, method, collection, record): (JSONSlice?, JSONSlice?, JSONSlice?, JSONSlice?)
        guard take("{") else { return false }
        repeat {
            if !hasVersion, take(#""jsonrpc":"2.0""#) {
                hasVersion = true
            } else if id == nil, take(#""id":"#) {
                id = identity()
                if id == nil { return false }
            } else if method == nil, take(#""method":"#) {
                method = string(maximum: .max)
                if method == nil { return false }
            } else if collection == nil, take(#""params":{"#) {
                repeat {
                    if collection == nil, take(#""collection":"#) {
                        collection = string(maximum: Naming.maximumCollectionNameBytes)
                        if collection == nil { return false }
                    } else if record == nil, take(#""id":"#) {
                        record = string(maximum: Naming.maximumIDBytes)
                        if record == nil { return false }
                    } else {
                        return false
                    }
                } while take(",")
                guard take("}"), collection != nil else { return false }
            } else {
                return false
            }
        } while take(",")
        guard take("}"), position == self.text.count, hasVersion, let id, let method, let collection, let record,
            let row = methods.firstIndex(where: { method.equals($0.name, text) }),
            methods[row].required == Parameter.collection.mask | Parameter.id.mask
        else { return false }
        request.reset()
        request.id = id
        request.traits = methods[row]
        request.set(.collection, collection)
        request.set(.id, record)
        return true
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
