/// A model that names its primary key, which determines the id of its record.
///
/// ```swift
/// struct Membership: Codable, Persistable {
///     static let primaryKey = PrimaryKey(\Membership.team, \Membership.number)
///
///     var team: String
///     var number: Int
///     var nickname: String?
/// }
/// ```
///
/// Several models can be stored in one record: a network response, a form, the application's own model.
/// ``Repository/persist(_:)->Model`` accepts any of them; fields that a model does not have are kept.
///
/// ### A stored shape of its own
/// A model is stored as it is encoded. If its members are named or nested differently from those of the record,
/// ``stored`` returns another value:
///
/// ```swift
/// struct NicknameForm: Encodable, Persistable {
///     static let primaryKey = PrimaryKey(\NicknameForm.team, \NicknameForm.number)
///
///     var team: String
///     var number: Int
///     var text: String
///     var stored: [String: String] { ["nickname": text] }
/// }
/// ```
///
/// A Persistable model is `Identifiable` by its ``recordID``, unless it has an `id` of its own.
public protocol Persistable: Encodable, Identifiable {
    /// The properties that make up the record's id.
    static var primaryKey: PrimaryKey<Self> { get }

    /// The type of the stored shape.
    associatedtype Stored: Encodable = Self

    /// The model in its stored shape; by default the model itself.
    var stored: Stored { get throws }
}

extension Persistable {
    /// The id of the model's record.
    public var recordID: String { Self.primaryKey.recordID(of: self) }

    public var id: String { recordID }
}

extension Persistable where Stored == Self {
    public var stored: Self { self }
}
