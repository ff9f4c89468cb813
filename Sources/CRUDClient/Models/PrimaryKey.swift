/// The properties of a model that make up the id of its record.
///
/// A single property is the id. Several are joined by `:`, with `%` and `:` inside them written `%25` and `%3A`, so
/// that different keys never have the same id.
///
/// ```swift
/// static let primaryKey = PrimaryKey(\Membership.team, \Membership.number)      // "blue:17"
/// ```
public struct PrimaryKey<Model>: Sendable {
    private let parts: [@Sendable (Model) -> String]

    public init<First: RecordIDConvertible, each Other: RecordIDConvertible>(
        _ first: any KeyPath<Model, First> & Sendable, _ others: repeat any KeyPath<Model, each Other> & Sendable
    ) {
        var parts = [Self.part(first)]
        for other in repeat each others { parts.append(Self.part(other)) }
        self.parts = parts
    }

    /// The id of a model's record.
    public func recordID(of model: Model) -> String {
        let texts = parts.map { $0(model) }
        return texts.count == 1 ? texts[0] : texts.map(Self.escaped).joined(separator: ":")
    }

    private static func part(
        _ property: any KeyPath<Model, some RecordIDConvertible> & Sendable
    ) -> @Sendable (Model) -> String {
        { $0[keyPath: property].recordID }
    }

    private static func escaped(_ text: String) -> String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "%"): bytes += "%25".utf8
            case UInt8(ascii: ":"): bytes += "%3A".utf8
            default: bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
