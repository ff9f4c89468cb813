package import CRUDJSON
import CRUDPluginABI

/// A collection that a child has opened.
final class ChildCollection: Sendable {
    /// What the child is told to call it.
    let number: Int
    /// How items travel to the child.
    let itemSpelling: ItemSpelling

    /// How an item is spelt in a frame.
    enum ItemSpelling {
        /// As the JSON that it is, under `item`.
        case json
        /// As a string that holds its text, under `text`.
        case text
        /// In base64, under `bytes`.
        case bytes
    }

    init(_ specification: crudd_collection_spec, number: Int, wantsTexts: Bool) {
        self.number = number
        let isJSON = specification.format.buffer.elementsEqual("json".utf8)
        itemSpelling = isJSON ? (wantsTexts ? .text : .json) : .bytes
    }
}

extension FrameWriter {
    /// Writes an item as the next member: as it stands if it may be JSON and is, else in base64.
    package mutating func item(_ item: UnsafeRawBufferPointer, mayBeJSON: Bool, _ scanner: inout JSONScanner) {
        if mayBeJSON, Self.isValue(item, &scanner) {
            raw(#","item":"#)
            raw(item)
        } else {
            raw(#","bytes":"#)
            base64(item)
        }
    }

    mutating func item(
        _ item: UnsafeRawBufferPointer, _ spelling: ChildCollection.ItemSpelling, _ scanner: inout JSONScanner
    ) {
        if spelling == .text, Self.isValue(item, &scanner) {
            raw(#","text":"#)
            string(item)
        } else {
            self.item(item, mayBeJSON: spelling == .json, &scanner)
        }
    }

    /// Whether bytes are one JSON value, without white space around it, which would get lost in a frame.
    private static func isValue(_ item: UnsafeRawBufferPointer, _ scanner: inout JSONScanner) -> Bool {
        let text = item.bindMemory(to: UInt8.self).span
        scanner.reset()
        guard let value = try? scanner.value(text) else { return false }
        return value.range == 0..<text.count
    }
}

extension FrameReader {
    /// Takes the value of a member that holds an item; nil if the member is another.
    package mutating func item(_ key: JSONSlice) throws(FrameFault) -> FrameText? {
        if isKey(key, "item") { return try json() }
        if isKey(key, "text") { return try string() }
        if isKey(key, "bytes") { return try base64() }
        return nil
    }
}
