package import CRUDJSON

/// The records that one slice of a search for records to delete has found, on their way from a child: as JSON
/// `{"records":[["id","revision"],…],"corrupt":["id",…]}`.
package struct MatchBatch {
    package var found: [(id: [UInt8], revision: [UInt8])]
    /// Records that cannot be decoded.
    package var corrupt: [[UInt8]]

    package init(found: [(id: [UInt8], revision: [UInt8])] = [], corrupt: [[UInt8]] = []) {
        self.found = found
        self.corrupt = corrupt
    }

    package var json: [UInt8] {
        var writer = JSONWriter()
        writer.object { batch in
            batch.key("records")
            batch.array { records in
                for record in found {
                    records.array {
                        $0.string(utf8: record.id)
                        $0.string(utf8: record.revision)
                    }
                }
            }
            batch.key("corrupt")
            batch.array { ids in
                for id in corrupt { ids.string(utf8: id) }
            }
        }
        return writer.bytes
    }

    /// - Returns: nil for anything that ``json`` does not give.
    package init?(json: [UInt8]) {
        self.init()
        do throws(JSONSyntaxError) {
            guard try read(json.span) else { return nil }
        } catch {
            return nil
        }
    }

    private mutating func read(_ text: Span<UInt8>) throws(JSONSyntaxError) -> Bool {
        var scanner = JSONScanner()
        guard try scanner.peekKind(text) == .object else { return false }
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(text, isFirst: &isFirst) {
            if key.equals("corrupt", text) {
                guard let ids = try scanner.strings(text) else { return false }
                corrupt = ids
                continue
            }
            guard try scanner.peekKind(text) == .array else { return false }
            scanner.enter()
            var isFirstRecord = true
            while try scanner.nextElement(text, isFirst: &isFirstRecord) {
                guard let pair = try scanner.strings(text), pair.count == 2 else { return false }
                found.append((pair[0], pair[1]))
            }
        }
        return scanner.isAtEnd(text)
    }
}

extension JSONScanner {
    /// Reads an array of strings; nil if that is not what comes next.
    package mutating func strings(_ text: Span<UInt8>) throws(JSONSyntaxError) -> [[UInt8]]? {
        guard try peekKind(text) == .array else { return nil }
        var strings: [[UInt8]] = []
        enter()
        var isFirst = true
        while try nextElement(text, isFirst: &isFirst) {
            let value = try value(text)
            guard value.kind == .string else { return nil }
            strings.append(value.decodedString(text))
        }
        return strings
    }
}
