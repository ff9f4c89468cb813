package import CRUDJSON

extension SortOrder {
    /// Reads the `sort` parameter: `[{"property": path, "order": "asc" | "desc"}, …]`. Without `order` it is ascending.
    ///
    /// - Throws: `invalidParams` with `sort` as ``CRUDError/Details/member`` for anything else.
    package init(json text: Span<UInt8>) throws(CRUDError) {
        do {
            try self.init(scanning: text)
        } catch let error as CRUDError {
            throw error
        } catch {
            throw Self.invalid("sort is not valid JSON")
        }
    }

    /// Writes the `sort` parameter.
    package func write(to writer: inout JSONWriter) {
        writer.array { elements in
            for key in keys {
                elements.object {
                    $0.member("property", key.path.text)
                    $0.member("order", key.isDescending ? "desc" : "asc")
                }
            }
        }
    }

    private init(scanning text: Span<UInt8>) throws {
        var scanner = JSONScanner()
        var keys: [SortKey] = []
        var paths: Set<PropertyPath> = []
        guard try scanner.peekKind(text) == .array else { throw Self.invalid("sort must be an array") }
        scanner.enter()
        var isFirst = true
        while try scanner.nextElement(text, isFirst: &isFirst) {
            guard try scanner.peekKind(text) == .object else {
                throw Self.invalid("an element of sort must be an object with property and order")
            }
            let key = try Self.key(&scanner, text)
            // Records that tie in a property do so in it a second time.
            if paths.insert(key.path).inserted { keys.append(key) }
        }
        guard scanner.isAtEnd(text) else { throw Self.invalid("there is text after sort") }
        self.init(keys)
    }

    private static func key(_ scanner: inout JSONScanner, _ text: Span<UInt8>) throws -> SortKey {
        var path: PropertyPath?
        var isDescending: Bool?
        scanner.enter()
        var isFirst = true
        while let key = try scanner.nextKey(text, isFirst: &isFirst) {
            let value = try scanner.value(text)
            if key.equals("property", text), path == nil {
                guard value.kind == .string, let named = PropertyPath(utf8: value.decodedString(text)) else {
                    throw invalid(#"property must be a path, in which a backslash precedes . or another backslash"#)
                }
                path = named
            } else if key.equals("order", text), isDescending == nil {
                guard value.kind == .string, value.equals("asc", text) || value.equals("desc", text) else {
                    throw invalid("order must be asc or desc")
                }
                isDescending = value.equals("desc", text)
            } else {
                throw invalid("an element of sort must have property and order, once each, and nothing else")
            }
        }
        guard let path else { throw invalid("an element of sort must name a property") }
        return SortKey(path, isDescending: isDescending ?? false)
    }

    private static func invalid(_ message: String) -> CRUDError {
        CRUDError(.invalidParams, message, details: .init(member: "sort"))
    }
}
