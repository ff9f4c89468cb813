package import CRUDJSON
import CRUDPluginABI

/// A collection that a child has opened.
final class ChildCollection: Sendable {
    /// Its name as a JSON string.
    let name: [UInt8]
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

    init(_ specification: crudd_collection_spec, wantsTexts: Bool) {
        name = Self.json(specification.name)
        let isJSON = specification.format.buffer.elementsEqual("json".utf8)
        itemSpelling = isJSON ? (wantsTexts ? .text : .json) : .bytes
    }

    private static func json(_ name: crudd_bytes) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.appendJSONString(name.buffer)
        return bytes
    }
}

extension FrameWriter {
    /// Writes an item as the next member.
    package mutating func item(_ item: UnsafeRawBufferPointer, isJSON: Bool) {
        raw(isJSON ? #","item":"# : #","bytes":"#)
        if isJSON { raw(item) } else { base64(item) }
    }

    mutating func item(_ item: UnsafeRawBufferPointer, _ spelling: ChildCollection.ItemSpelling) {
        switch spelling {
        case .json: self.item(item, isJSON: true)
        case .bytes: self.item(item, isJSON: false)
        case .text:
            raw(#","text":"#)
            string(item)
        }
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
