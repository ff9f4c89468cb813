import CRUDFormats
import CRUDModel
import CRUDTestSupport

extension Codec {
    /// The stored form of an item.
    func encode(_ item: String) throws(CRUDError) -> [UInt8] {
        let text = Array(item.utf8)
        var stored: [UInt8] = []
        try encode(item: text.span, into: &stored)
        return stored
    }

    /// The item of a stored form.
    func decode(_ stored: [UInt8], maximumBytes: Int = 16 << 20) throws(CRUDError) -> String {
        var item: [UInt8] = []
        try decode(stored: stored.span, into: &item, maximumBytes: maximumBytes)
        return String(decoding: item, as: UTF8.self)
    }

    /// Why an item has no stored form; nil if it has one.
    func refusal(of item: String) -> CRUDError? {
        do throws(CRUDError) {
            _ = try encode(item)
            return nil
        } catch {
            return error
        }
    }

    /// Why stored bytes have no item; nil if they have one.
    func fault(in stored: [UInt8], maximumBytes: Int = 16 << 20) -> CRUDError? {
        do throws(CRUDError) {
            _ = try decode(stored, maximumBytes: maximumBytes)
            return nil
        } catch {
            return error
        }
    }
}

/// What an item is when it comes back from a property list: integers as they were, other numbers as the shortest
/// spelling of their binary64.
func asPropertyListsSpell(_ item: JSON) -> String {
    switch item.content {
    case .null, .boolean, .string: return item.text
    case .number:
        if item.text != "-0", !item.text.contains(where: { ".eE".contains($0) }) { return item.text }
        return Double(item.text)?.description ?? "no number"
    case .array(let elements): return "[" + elements.map(asPropertyListsSpell).joined(separator: ",") + "]"
    case .object(let members):
        return "{"
            + members.map { JSON.quote($0.name) + ":" + asPropertyListsSpell($0.value) }.joined(separator: ",") + "}"
    }
}
