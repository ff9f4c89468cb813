import CRUDPluginKit

/// What the name of a file in a collection's directory says.
enum FileName {
    /// A record: `item_ID.EXT`.
    case record(Format, EncodedName.Meaning)
    /// A file of ours that was never finished, left behind by a crash.
    case temporary
    /// Somebody else's.
    case foreign

    /// What the items of a collection are, and the extension of their files.
    enum Format: String {
        case json, xml, plist
    }

    private static let recordPrefix = "item_"
    private static let temporaryPrefix = ".crudd-temporary-"

    init(_ name: UnsafeRawBufferPointer) {
        self = .foreign
        if name.starts(with: Self.temporaryPrefix.utf8) { self = .temporary }
        guard name.starts(with: Self.recordPrefix.utf8), let dot = name.firstIndex(of: UInt8(ascii: ".")),
            let format = Format(rawValue: String(decoding: name[(dot + 1)...], as: UTF8.self))
        else { return }
        let meaning = EncodedName.meaning(
            of: name[Self.recordPrefix.utf8.count..<dot], isValid: RecordRules.isValidID)
        if case .nothing = meaning { return }
        self = .record(format, meaning)
    }

    static func record(_ id: EncodedName, _ format: Format) -> String {
        "\(recordPrefix)\(id.text).\(format.rawValue)"
    }

    /// A name that no other file has.
    static func makeTemporary() -> String {
        temporaryPrefix + String(UInt64.random(in: 0...UInt64.max), radix: 16)
    }
}
