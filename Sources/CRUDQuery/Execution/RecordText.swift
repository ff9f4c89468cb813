import CRUDJSON

/// Writes records as the protocol shows them: `{"id", "item", "revision", "expiresAt"?}`.
struct RecordText: ~Copyable {
    /// Which part of the items is shown; nil: the whole.
    private let fields: FieldProjection?
    private var scanner = JSONScanner()

    init(_ fields: FieldProjection?) {
        self.fields = fields
    }

    /// - Parameters:
    ///   - item: JSON text; it does not matter where no part of it is shown.
    ///   - isValid: whether the item is known to be valid JSON. It may have been edited in the storage.
    /// - Throws: `JSONSyntaxError` where it is not.
    mutating func write(
        _ record: FoundRecord, item: Span<UInt8>, isValid: Bool
    ) throws(JSONSyntaxError) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(64 + record.id.count + (fields == nil ? item.count : 0) + record.revision.count)
        text.append(contentsOf: #"{"id":"#.utf8)
        // The buffers are valid during this call.
        text.appendJSONString(unsafe record.id.bindMemory(to: UInt8.self).span)
        text.append(contentsOf: #","item":"#.utf8)
        if let fields, fields.isEmpty {
            text.append(contentsOf: "{}".utf8)
        } else {
            if !isValid { try scanner.document(item) }
            if let fields { try fields.append(of: item, to: &text) } else { text.append(item) }
        }
        appendEnd(of: record, to: &text)
        return text
    }

    /// The record without its item.
    ///
    /// - Parameter suffix: further members, behind a comma.
    func write(withoutItemOf record: FoundRecord, suffix: String = "") -> [UInt8] {
        var text = Array(#"{"id":"#.utf8)
        // As above.
        text.appendJSONString(unsafe record.id.bindMemory(to: UInt8.self).span)
        appendEnd(of: record, suffix: suffix, to: &text)
        return text
    }

    private func appendEnd(of record: FoundRecord, suffix: String = "", to text: inout [UInt8]) {
        text.append(contentsOf: #","revision":"#.utf8)
        if record.revision.allSatisfy({ $0 < 0x80 }) {
            text.appendJSONString(unsafe record.revision.bindMemory(to: UInt8.self).span)
        } else {
            // Somebody has written it beside the daemon; it need not even be UTF-8.
            text.appendJSONString(String(decoding: record.revision, as: UTF8.self).utf8)
        }
        if record.expiresAt != 0 {
            text.append(contentsOf: #","expiresAt":"#.utf8)
            text.append(contentsOf: record.expiresAt.description.utf8)
        }
        text += suffix.utf8
        text.append(UInt8(ascii: "}"))
    }
}
