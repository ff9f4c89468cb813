package import CRUDJSON

/// The position of a record in a sort order: the values that it is sorted by, and its id.
///
/// As JSON it is `{"values":[…],"id":"…"}`: numbers in full, infinity as `1e999`, arrays as `[]` and objects as `{}`.
package struct SortPosition: Hashable, Sendable {
    /// One for each key of the order.
    package var values: [SortValue]
    /// UTF-8.
    package var id: [UInt8]

    package init(values: [SortValue], id: [UInt8]) {
        self.values = values
        self.id = id
    }
}

extension SortOrder {
    /// Compares two positions: below 0 if the left one comes first, 0 if they are equal, above 0 otherwise.
    package func compare(_ left: SortPosition, _ right: SortPosition) -> Int {
        for key in keys.indices {
            let order = left.values[key].compare(with: right.values[key])
            if order != 0 { return keys[key].isDescending ? -order : order }
        }
        return CRUDModel.compare(0..<left.id.count, left.id.span, with: right.id)
    }
}

// MARK: JSON

extension SortPosition {
    package var json: [UInt8] {
        var writer = JSONWriter()
        write(to: &writer)
        return writer.bytes
    }

    package func write(to writer: inout JSONWriter) {
        writer.object { position in
            position.key("values")
            position.array { elements in
                for value in values { value.write(to: &elements) }
            }
            position.key("id")
            position.string(utf8: id)
        }
    }

    /// Reads a position.
    ///
    /// - Parameter count: how many values there must be.
    /// - Throws: `invalidQuery` for anything that ``json`` does not return.
    package init(json text: Span<UInt8>, count: Int) throws(CRUDError) {
        do {
            try self.init(scanning: text)
        } catch {
            throw CRUDError(.invalidQuery, "this is not a position in a sort order")
        }
        guard values.count == count else {
            throw CRUDError(.invalidQuery, "this position belongs to another sort order")
        }
    }

    private init(scanning text: Span<UInt8>) throws {
        var scanner = JSONScanner()
        var values: [SortValue]?
        var id: [UInt8]?
        guard try scanner.peekKind(text) == .object else { throw InvalidPosition() }
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(text, isFirst: &isFirst) {
            if key.equals("values", text), values == nil, try scanner.peekKind(text) == .array {
                values = try Self.values(&scanner, text)
            } else if key.equals("id", text), id == nil, try scanner.peekKind(text) == .string {
                id = try scanner.value(text).decodedString(text)
            } else {
                throw InvalidPosition()
            }
        }
        guard let values, let id, scanner.isAtEnd(text) else { throw InvalidPosition() }
        self.init(values: values, id: id)
    }

    private static func values(
        _ scanner: inout JSONScanner, _ text: Span<UInt8>
    ) throws(JSONSyntaxError) -> [SortValue] {
        var values: [SortValue] = []
        scanner.enter()
        var isFirst = true
        var work = Work()
        while try scanner.nextElement(text, isFirst: &isFirst) {
            values.append(SortValue(try scanner.value(text), text, &work))
        }
        return values
    }

    private struct InvalidPosition: Error {}
}

extension SortValue {
    fileprivate func write(to writer: inout JSONWriter) {
        switch self {
        case .null: writer.null()
        case .boolean(let value): writer.bool(value)
        case .number(.integer(let integer)): writer.integer(integer)
        case .number(.binary64(let value)):
            // Whatever is not a 64-bit integer has a fraction or an exponent, and so is read as a binary64 again.
            let text = value.isInfinite ? (value < 0 ? "-1e999" : "1e999") : value.description
            writer.raw(text.utf8)
        case .string(let text): writer.string(utf8: text)
        case .array: writer.array { _ in }
        case .object: writer.object { _ in }
        }
    }
}
