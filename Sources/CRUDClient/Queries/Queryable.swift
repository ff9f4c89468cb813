/// A model that lists its properties, so that the compiler checks queries.
///
/// ```swift
/// struct User: Codable, Identifiable, Queryable {
///     var id: String
///     var name: String
///     var age: Int
///     var address: Address            // Queryable itself: $0.address.city
///
///     struct Properties {
///         let name = Property(\User.name, CodingKeys.name)
///         let age = Property(\User.age, CodingKeys.age)
///         let address = Property(\User.address, CodingKeys.address)
///     }
///     static let properties = Properties()
/// }
///
/// let adults = try await users.fetch { $0.age >= 18 && $0.name.like("B%") }
/// ```
///
/// The type of each property is that of the key path, its stored name that of the coding key. `Properties` and
/// `CodingKeys` must be declared in the same file, unless the model declares its `CodingKeys` explicitly.
public protocol Queryable {
    /// The properties that queries may use.
    associatedtype Properties: Sendable

    static var properties: Properties { get }
}
