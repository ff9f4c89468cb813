/// Collections of records: what a ``CRUDClient`` and `InMemoryDatabase` of the product `CRUDInMemory` both are.
///
/// An application that has an `any RecordDatabase` runs on either:
///
/// ```swift
/// struct Shop {
///     let orders: Repository<Order>
///     let stock: Repository<Article>
///
///     init(_ database: any RecordDatabase) {
///         orders = database.repository("orders", of: Order.self)
///         stock = database.repository("stock", of: Article.self)
///     }
/// }
/// ```
public protocol RecordDatabase<Store>: Sendable {
    /// What the records of one collection are accessed through.
    associatedtype Store: RecordStore

    /// The records of the collection `name`.
    ///
    /// - Parameter name: 1 to 128 bytes of UTF-8 without control characters; spaces are legal.
    func repository(_ name: String) -> Store
}

extension RecordDatabase {
    /// The records of the collection `name` as values of one type.
    ///
    /// Nothing is sent yet: the first call fails if the daemon does not know the collection.
    ///
    /// - Parameters:
    ///   - name: 1 to 128 bytes of UTF-8 without control characters; spaces are legal.
    ///   - type: the model.
    public func repository<Model>(_ name: String, of type: Model.Type) -> Repository<Model> {
        Repository(repository(name))
    }
}
