import CRUDModel

/// Decodes the tree of a document into a configuration and collects diagnostics.
///
/// A decoding function that finds an error reports it and returns nil or a substitute, so that decoding continues and
/// one run finds all errors. The result is valid only if ``diagnostics`` is empty. Each section is decoded in an
/// extension in a file of its own; this file has what they share.
///
/// The key decides the type of a scalar: `007` under a key that takes a name is the text "007", and `"1024"` under a
/// key that takes a number is the number 1024. Quotes make no difference: nobody should need to know that YAML
/// distinguishes `0660` from `"0660"`.
struct ConfigurationDecoder {
    let file: String
    let environment: [String: String]
    /// At first those of the document, then those of what it means.
    private(set) var diagnostics: [ConfigurationDiagnostic]

    mutating func report(_ position: SourcePosition, _ message: String) {
        diagnostics.append(ConfigurationDiagnostic(file: file, position: position, message: message))
    }

    mutating func report(_ node: YAMLNode, expected: String) {
        if case .invalid = node.content { return }
        report(node.position, "expected \(expected), found \(node.summary)")
    }

    // MARK: Mappings and lists

    /// The members of a mapping of which all keys are known.
    struct Fields<Key: Hashable> {
        let position: SourcePosition
        fileprivate(set) var entries: [Key: YAMLNode.Entry] = [:]

        subscript(key: Key) -> YAMLNode? { entries[key]?.value }
    }

    /// The members of a mapping; unknown keys are errors.
    ///
    /// The value of an unknown key is decoded as if it had the key that the message suggests: a mistyped key is one
    /// error, not a missing key besides, and errors below it are found in the same run.
    mutating func fields<Key: CaseIterable & RawRepresentable<String> & Hashable>(
        _ node: YAMLNode, _: Key.Type
    ) -> Fields<Key>? {
        let known = Key.allCases.map(\.rawValue)
        guard let entries = entries(node, "a mapping (\(known.joined(separator: ", ")))") else { return nil }
        var fields = Fields<Key>(position: node.position)
        for entry in entries {
            if let key = Key.allCases.first(where: { entry.key.elementsEqual($0.rawValue.utf8) }) {
                fields.entries[key] = entry
                continue
            }
            report(entry.keyPosition, unknown("key", entry.key, known: known))
            if let key = nearestName(to: entry.key, among: known).flatMap(Key.init), fields.entries[key] == nil {
                fields.entries[key] = entry
            }
        }
        return fields
    }

    /// The value of a required key.
    mutating func required<Key: RawRepresentable<String>>(
        _ key: Key, in fields: Fields<Key>, of what: String
    ) -> YAMLNode? {
        if let node = fields[key] { return node }
        report(fields.position, "\(what) lacks the key \(quoted(key.rawValue.utf8))")
        return nil
    }

    /// The entries of a mapping with keys of the user's choice.
    mutating func entries(_ node: YAMLNode, _ expected: String) -> [YAMLNode.Entry]? {
        guard case .mapping(let entries) = node.content else {
            report(node, expected: expected)
            return nil
        }
        return entries
    }

    /// The elements of a list.
    mutating func elements(_ node: YAMLNode, _ expected: String) -> [YAMLNode]? {
        guard case .sequence(let elements) = node.content else {
            report(node, expected: expected)
            return nil
        }
        return elements
    }

    // MARK: Scalars

    /// The value that `parse` returns for a scalar. Where it returns nil, or the node is not a scalar, that is
    /// reported.
    mutating func scalar<Value>(_ node: YAMLNode, _ expected: String, parse: ([UInt8]) -> Value?) -> Value? {
        if case .scalar(let text, _) = node.content, let value = parse(text) { return value }
        report(node, expected: expected)
        return nil
    }

    /// Text that is not empty and can be passed to C.
    mutating func text(_ node: YAMLNode, _ expected: String) -> String? {
        scalar(node, expected) { text in
            text.isEmpty || text.contains(0) ? nil : String(decoding: text, as: UTF8.self)
        }
    }

    mutating func boolean(_ node: YAMLNode, _ expected: String = "true or false") -> Bool? {
        scalar(node, expected) { text in
            text.elementsEqual("true".utf8) ? true : text.elementsEqual("false".utf8) ? false : nil
        }
    }

    mutating func absolutePath(_ node: YAMLNode) -> String? {
        scalar(node, "an absolute path") { text in
            text.first != UInt8(ascii: "/") || text.contains(0) ? nil : String(decoding: text, as: UTF8.self)
        }
    }

    /// One of the words of an enumeration.
    mutating func choice<Value: CaseIterable & RawRepresentable<String>>(
        _ node: YAMLNode, _ what: String
    ) -> Value? {
        let known = Value.allCases.map(\.rawValue)
        guard case .scalar(let text, _) = node.content, !text.isEmpty else {
            report(node, expected: "one of \(known.joined(separator: ", "))")
            return nil
        }
        if let value = Value.allCases.first(where: { text.elementsEqual($0.rawValue.utf8) }) { return value }
        report(node.position, unknown(what, text, known: known))
        return nil
    }

    /// A number within a range, in the smallest unit of its kind; nil where the file has none or an invalid one.
    mutating func quantity(_ node: YAMLNode?, _ kind: Quantity, in range: ClosedRange<Int>) -> Int? {
        guard let node, let value = scalar(node, kind.expectation, parse: kind.value) else { return nil }
        if range.contains(value) { return value }
        report(node, expected: "\(kind.text(range.lowerBound)) to \(kind.text(range.upperBound))")
        return nil
    }

    /// A user's or group's id, given as such or by name.
    mutating func account(
        _ node: YAMLNode, _ kind: String, lookUp: (String) -> Accounts.LookupResult
    ) -> (name: String, id: UInt32)? {
        guard let name = text(node, "the name or id of a \(kind)") else { return nil }
        if name.utf8.allSatisfy(isDigit) {
            // The highest id means "none" to the kernel (chown(2), setresuid(2)).
            if let id = UInt32(name), id < .max { return (name, id) }
            report(node, expected: "the id of a \(kind), 0 to \(UInt32.max - 1)")
            return nil
        }
        switch lookUp(name) {
        case .id(let id): return (name, id)
        case .absent: report(node.position, "there is no \(kind) \(quoted(name.utf8)) on this machine")
        case .failure(let code):
            report(node.position, "the \(kind) \(quoted(name.utf8)) cannot be looked up: \(systemMessage(code))")
        }
        return nil
    }

    /// The pattern of a collection's rule.
    mutating func pattern(_ text: [UInt8], at position: SourcePosition) -> CollectionPattern? {
        do {
            return try CollectionPattern(text)
        } catch {
            report(position, "\(quoted(text)): \(error.reason)")
            return nil
        }
    }
}
