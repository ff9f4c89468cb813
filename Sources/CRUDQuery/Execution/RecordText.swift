import CRUDJSON

/// Writes records as the protocol shows them: `{"id", "item"?, "revision", "expiresAt"?}`.
struct RecordText: ~Copyable {
    /// Which part of the items is shown; nil: the whole. Where it is empty, the records have no `item`.
    private let fields: FieldProjection?
    private var scanner = JSONScanner()

    init(_ fields: FieldProjection?) {
        self.fields = fields
    }

    /// - Parameters:
    ///   - item: JSON text.
    ///   - isValid: whether it is known to be valid. It may have been edited in the storage.
    ///   - work: of the projection and the check.
    /// - Throws: `JSONSyntaxError` where it is not, or the work is stopped.
    mutating func write(
        _ record: FoundRecord, item: Span<UInt8>, isValid: Bool, _ work: inout Work
    ) throws(JSONSyntaxError) -> [UInt8] {
        if !isValid { try scanner.document(item, &work) }
        if let fields, fields.isEmpty { return write(withoutItemOf: record) }
        var text: [UInt8] = []
        text.reserveCapacity(64 + record.id.count + (fields == nil ? item.count : 0) + record.revision.count)
        text.append(#"{"id":"#)
        // The buffers are valid during this call.
        text.appendJSONString(unsafe record.id.bindMemory(to: UInt8.self).span)
        text.append(#","item":"#)
        if let fields { try fields.append(of: item, to: &text, &work) } else { text.append(item) }
        appendEnd(of: record, to: &text)
        return text
    }

    /// The record without its item.
    ///
    /// - Parameter suffix: further members, behind a comma.
    func write(withoutItemOf record: FoundRecord, suffix: StaticString = "") -> [UInt8] {
        var text: [UInt8] = []
        text.append(#"{"id":"#)
        // As above.
        text.appendJSONString(unsafe record.id.bindMemory(to: UInt8.self).span)
        appendEnd(of: record, suffix: suffix, to: &text)
        return text
    }

    private func appendEnd(of record: FoundRecord, suffix: StaticString = "", to text: inout [UInt8]) {
        text.append(#","revision":"#)
        if record.revision.allSatisfy({ $0 < 0x80 }) {
            text.appendJSONString(unsafe record.revision.bindMemory(to: UInt8.self).span)
        } else {
            // Somebody has written it beside the daemon; it need not even be UTF-8.
            text.appendJSONString(String(decoding: record.revision, as: UTF8.self).utf8)
        }
        if record.expiresAt != 0 {
            text.append(#","expiresAt":"#)
            text.append(contentsOf: record.expiresAt.description.utf8)
        }
        text.append(suffix)
        text.append(UInt8(ascii: "}"))
    }
}
