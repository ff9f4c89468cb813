import CRUDJSON
import CRUDModel
import CRUDWire

/// A line of a dump.
enum DumpLine {
    /// The first line of a collection.
    case header(collection: String)
    case record(DumpRecord)
    /// The last line of a collection, with the number of its records.
    case trailer(count: Int)

    /// The version of the dumps that are written and read.
    static let version = 1

    /// What may stand in a line. A member that is not listed may mean something that a load would lose.
    private static let names: [StaticString] = [
        "id", "item", "expiresAt", "count", "crudd", "version", "collection", "format",
    ]

    /// - Parameter text: the line, without its end.
    /// - Throws: `parse_error`; the message lacks the number of the line.
    init(_ text: [UInt8]) throws(CRUDError) {
        let (values, unknown) = try Self.members(text)
        let (id, item, expiry, count) = (values[0], values[1], values[2], values[3])
        let (kind, version, collection) = (values[4], values[5], values[6])
        let header = try kind.map { kind throws(CRUDError) in try Self.header(kind, version, collection, text.span) }
        if let unknown {
            throw .dump("the member \(quoted(unknown.decodedString(text.span))) is unknown or repeated")
        }
        if let header {
            self = header
        } else if let count {
            guard let count = count.integer(text.span), count >= 0, values.count(where: { $0 != nil }) == 1 else {
                throw .dump(#"the last line of a collection is {"count": n}"#)
            }
            self = .trailer(count: count)
        } else {
            guard let id, let item, version == nil, collection == nil, values[7] == nil else {
                throw .dump(#"a record is {"id": string, "item": any value, "expiresAt": integer or left out}"#)
            }
            self = .record(try DumpRecord(text: text, id: id, item: item, expiry: expiry))
        }
    }

    /// The values of the members, in the order of ``names``, and the first key that is not one of them or is repeated.
    private static func members(
        _ text: [UInt8]
    ) throws(CRUDError) -> (values: [JSONSlice?], unknown: JSONSlice?) {
        var values = [JSONSlice?](repeating: nil, count: names.count)
        var unknown: JSONSlice?
        do throws(JSONSyntaxError) {
            var scanner = JSONScanner()
            let object = try scanner.document(text.span)
            guard object.kind == .object else { return (values, nil) }
            scanner.reset(at: object.start)
            scanner.enter()
            var isFirst = true
            while let key = try scanner.nextKey(text.span, isFirst: &isFirst) {
                let value = try scanner.value(text.span)
                if let index = names.firstIndex(where: { key.equals($0, text.span) }), values[index] == nil {
                    values[index] = value
                } else {
                    unknown = unknown ?? key
                }
            }
        } catch {
            throw .dump("not valid JSON: \(error.reason.rawValue) at byte \(error.offset + 1)")
        }
        return (values, unknown)
    }

    private static func header(
        _ kind: JSONSlice, _ version: JSONSlice?, _ collection: JSONSlice?, _ text: Span<UInt8>
    ) throws(CRUDError) -> DumpLine {
        guard kind.string(text) == "dump", let version, let collection, let name = collection.string(text) else {
            throw .dump(#"the first line is {"crudd": "dump", "version": 1, "collection": string, "format": string}"#)
        }
        guard version.integer(text) == Self.version else {
            throw .dump("the dump has version \(version.verbatim(text)), this program reads version \(Self.version)")
        }
        if let violation = Naming.violation(name.utf8.span, maximum: Naming.maximumCollectionNameBytes) {
            throw .dump("the collection's name \(violation)")
        }
        return .header(collection: name)
    }
}

/// A record in the text of its line, from which id and item are copied as they are.
struct DumpRecord {
    let text: [UInt8]
    let id: JSONSlice
    let item: JSONSlice
    /// In milliseconds since 1970-01-01 UTC; nil if the record does not expire.
    let expiresAt: Int?

    fileprivate init(text: [UInt8], id: JSONSlice, item: JSONSlice, expiry: JSONSlice?) throws(CRUDError) {
        guard id.kind == .string else { throw .dump("the id is not a string") }
        if let violation = Naming.violation(id.decodedString(text.span).span, maximum: Naming.maximumIDBytes) {
            throw .dump("the id \(violation)")
        }
        self.text = text
        self.id = id
        self.item = item
        expiresAt = expiry?.integer(text.span)
        if expiry != nil, expiresAt == nil { throw .dump("expiresAt is not an integer") }
    }
}

extension CRUDError {
    /// The error of a line of a dump.
    static func dump(_ message: String) -> CRUDError { CRUDError(.parseError, message) }
}
