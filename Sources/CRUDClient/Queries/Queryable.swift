/// A model that lists its properties, so that queries of it are checked by the compiler.
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
/// Each property takes its type from the key path and its stored name from the coding key. `Properties` and `CodingKeys`
/// must be declared in one file, unless the model writes its `CodingKeys` out.
public protocol Queryable {
    /// The properties that queries may speak of.
    associatedtype Properties: Sendable

    static var properties: Properties { get }
}
