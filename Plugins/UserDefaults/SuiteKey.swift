import CRUDModel

/// A key of the suite that is ours.
///
/// `database_COLLECTION_item_ID` holds an item, `database_COLLECTION_revision_ID` its revision, and
/// `database_COLLECTION_formats` the formats that the collection was opened with. The first of them has these keys; in
/// those of another format, `item` and `revision` are followed by a dot and its name, as in `item.plist`, so that
/// records of another format are out of sight, not misread. COLLECTION and ID have every byte outside `A-Za-z0-9.-` as
/// `%XX`, hence no `_`, and each key can be read in one way only.
struct SuiteKey {
    enum Subject: Equatable {
        case item(id: [UInt8], Format?)
        case revision(id: [UInt8], Format?)
        case formats
    }

    /// What the items of a collection are.
    enum Format: String {
        case json, xml, plist
    }

    let collection: [UInt8]
    let subject: Subject

    init(_ collection: [UInt8], _ subject: Subject) {
        self.collection = collection
        self.subject = subject
    }

    private static let root = "database"

    // MARK: Text

    var text: String {
        let collection = Self.encode(collection)
        switch subject {
        case .item(let id, let format):
            return "\(Self.root)_\(collection)_item\(Self.suffix(format))_\(Self.encode(id))"
        case .revision(let id, let format):
            return "\(Self.root)_\(collection)_revision\(Self.suffix(format))_\(Self.encode(id))"
        case .formats: return "\(Self.root)_\(collection)_formats"
        }
    }

    private static func suffix(_ format: Format?) -> String {
        format.map { ".\($0.rawValue)" } ?? ""
    }

    /// Nil for a key that is somebody else's, among them every spelling that ``text`` does not make.
    init?(_ text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: "_"), omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[0].elementsEqual(Self.root.utf8),
            let collection = Self.decode(parts[1], maximum: Naming.maximumCollectionNameBytes)
        else { return nil }
        let words = parts[2].split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        let format = words.count == 2 ? Format(rawValue: String(decoding: words[1], as: UTF8.self)) : nil
        guard words.count == 1 || format != nil else { return nil }
        switch (String(decoding: words[0], as: UTF8.self), parts.count) {
        case ("formats", 3) where format == nil: self.init(collection, .formats)
        case ("item", 4):
            guard let id = Self.decode(parts[3], maximum: Naming.maximumIDBytes) else { return nil }
            self.init(collection, .item(id: id, format))
        case ("revision", 4):
            guard let id = Self.decode(parts[3], maximum: Naming.maximumIDBytes) else { return nil }
            self.init(collection, .revision(id: id, format))
        default: return nil
        }
    }

    // MARK: Names

    private static let digits = Array("0123456789ABCDEF".utf8)

    private static func encode(_ name: [UInt8]) -> String {
        var text: [UInt8] = []
        for byte in name {
            if standsForItself(byte) {
                text.append(byte)
            } else {
                text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil for any text that no name would be spelt with, so that no two keys stand for one.
    private static func decode(_ text: Substring.UTF8View, maximum: Int) -> [UInt8]? {
        var name: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            if standsForItself(byte) {
                name.append(byte)
                continue
            }
            guard byte == UInt8(ascii: "%"), let first = rest.popFirst(), let second = rest.popFirst(),
                let high = digits.firstIndex(of: first), let low = digits.firstIndex(of: second),
                !standsForItself(UInt8(high << 4 | low))
            else { return nil }
            name.append(UInt8(high << 4 | low))
        }
        guard Naming.fault(name.span, maximum: maximum) == nil, isUTF8(name) else { return nil }
        return name
    }

    private static func isUTF8(_ bytes: [UInt8]) -> Bool {
        do {
            _ = try UTF8Span(validating: bytes.span)
            return true
        } catch {
            return false
        }
    }

    static func standsForItself(_ byte: UInt8) -> Bool {
        isAlphanumeric(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-")
    }

    static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}
