import CRUDPluginKit

/// A key of the suite that is ours.
///
/// `database_COLLECTION_item_ID` holds an item, `database_COLLECTION_revision_ID` its revision and the like, and
/// `database_COLLECTION_formats` the formats that the collection was opened with. The first of them has these keys; in
/// those of another format, `item` and `revision` are followed by a dot and its name, as in `item.plist`, so that
/// records of another format are hidden, not misread. COLLECTION and ID have every byte outside `A-Za-z0-9.-` as `%XX`,
/// hence no `_`, and each key can be read in one way only.
struct SuiteKey {
    enum Subject: Equatable {
        case item(id: [UInt8], Format?)
        /// Revision, sequence number and expiry.
        case metadata(id: [UInt8], Format?)
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
    /// The key of the whole suite that holds ``SuiteContent/sequenceCeiling``. No collection has an empty name.
    static let sequenceCeiling = "\(root)__sequence"

    // MARK: Text

    var text: String {
        let collection = Self.encode(collection)
        switch subject {
        case .item(let id, let format):
            return "\(Self.root)_\(collection)_item\(Self.suffix(format))_\(Self.encode(id))"
        case .metadata(let id, let format):
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
            let collection = Self.decode(parts[1], isValid: RecordRules.isValidCollectionName)
        else { return nil }
        let words = parts[2].split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        let format = words.count == 2 ? Format(rawValue: String(decoding: words[1], as: UTF8.self)) : nil
        guard words.count == 1 || format != nil else { return nil }
        switch (String(decoding: words[0], as: UTF8.self), parts.count) {
        case ("formats", 3) where format == nil: self.init(collection, .formats)
        case ("item", 4):
            guard let id = Self.decode(parts[3], isValid: RecordRules.isValidID) else { return nil }
            self.init(collection, .item(id: id, format))
        case ("revision", 4):
            guard let id = Self.decode(parts[3], isValid: RecordRules.isValidID) else { return nil }
            self.init(collection, .metadata(id: id, format))
        default: return nil
        }
    }

    // MARK: Names

    private static let encoding = PercentEncoding(punctuation: ".-")

    private static func encode(_ name: [UInt8]) -> String {
        String(decoding: encoding.encode(name.span.bytes), as: UTF8.self)
    }

    /// Nil for any text that no name would be spelt with, so that no two keys stand for one.
    private static func decode(_ text: Substring.UTF8View, isValid: (RawSpan) -> Bool) -> [UInt8]? {
        guard let name = encoding.decode(Array(text).span.bytes), isValid(name.span.bytes) else { return nil }
        return name
    }
}
