/// A model that names its primary key, so that it can be stored without being told under which id.
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
/// Several models can feed one record: what the network sends, what a form holds, what the application works with.
/// ``Repository/persist(_:)->Model`` takes any of them; fields that a model does not carry stay as they are.
///
/// ### A stored shape of its own
/// A model is stored as its coding has it. One whose members are named or nested otherwise than the record's brings
/// another value for that in ``stored``:
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
/// A Persistable model is `Identifiable`: by its ``recordID``, unless it has an `id` of its own.
public protocol Persistable: Encodable, Identifiable {
    /// Which properties make the record's id.
    static var primaryKey: PrimaryKey<Self> { get }

    /// What is stored of the model.
    associatedtype Stored: Encodable = Self

    /// The model in the shape that it is stored in: itself, unless it brings another.
    var stored: Stored { get throws }
}

extension Persistable {
    /// The id of the record that keeps this model.
    public var recordID: String { Self.primaryKey.recordID(of: self) }

    public var id: String { recordID }
}

extension Persistable where Stored == Self {
    public var stored: Self { self }
}
