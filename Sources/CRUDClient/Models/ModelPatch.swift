/// Operations on single properties of a record: what the closure of
/// ``Repository/apply(id:ifRevision:upsert:expiry:_:)`` changes.
///
/// ```swift
/// try await users.apply(id: "ada") {
///     $0.visits += 1
///     $0.address.number.maximum(7)
///     $0.tags.add("regular")
/// }
/// ```
///
/// They are ``FieldOperations`` whose paths and types the compiler checks.
@dynamicMemberLookup
public struct ModelPatch<Model: Queryable> {
    var operations = FieldOperations()

    init() {}

    /// A property, with the operations on it.
    public subscript<Value>(
        dynamicMember member: KeyPath<Model.Properties, Property<Model, Value>>
    ) -> PatchedProperty<Model, Value> {
        get { PatchedProperty(Model.properties[keyPath: member]) }
        set { operations.append(newValue.operations) }
    }
}

/// A property of a record that is patched.
///
/// If its type is ``Queryable`` itself, the nested properties follow with a dot, as in ``Property``.
@dynamicMemberLookup
public struct PatchedProperty<Model, Value> {
    private let property: Property<Model, Value>
    fileprivate var operations = FieldOperations()

    fileprivate init(_ property: Property<Model, Value>) {
        self.property = property
    }

    /// A property within this one.
    public subscript<Nested>(
        dynamicMember member: KeyPath<Value.Properties, Property<Value, Nested>>
    ) -> PatchedProperty<Model, Nested> where Value: Queryable {
        get { PatchedProperty<Model, Nested>(property[dynamicMember: member]) }
        set { operations.append(newValue.operations) }
    }

    /// A property within this optional one.
    public subscript<Wrapped: Queryable, Nested>(
        dynamicMember member: KeyPath<Wrapped.Properties, Property<Wrapped, Nested>>
    ) -> PatchedProperty<Model, Nested> where Value == Wrapped? {
        get { PatchedProperty<Model, Nested>(property[dynamicMember: member]) }
        set { operations.append(newValue.operations) }
    }
}

// MARK: Operations

extension PatchedProperty where Value: PatchableNumber {
    /// Adds a number to the property; a missing one counts as 0.
    public static func += (property: inout PatchedProperty, amount: Value.Number) {
        property.operations.append(.increment, property.property.path) { try FieldOperand.number(amount) }
    }

    /// Subtracts a number from the property; a missing one counts as 0.
    public static func -= (property: inout PatchedProperty, amount: Value.Number) {
        property.operations.append(.increment, property.property.path) { try FieldOperand.negated(amount) }
    }

    /// Makes the property the lesser of itself and a number; that number if it is missing.
    public mutating func minimum(_ number: Value.Number) {
        operations.append(.minimum, property.path) { try FieldOperand.number(number) }
    }

    /// Makes the property the greater of itself and a number; that number if it is missing.
    public mutating func maximum(_ number: Value.Number) {
        operations.append(.maximum, property.path) { try FieldOperand.number(number) }
    }
}

extension PatchedProperty where Value: PatchableList {
    /// Appends a value to the list; a missing one counts as empty.
    public mutating func append(_ value: Value.PatchElement) {
        append(contentsOf: CollectionOfOne(value))
    }

    /// Appends values to the list; a missing one counts as empty.
    public mutating func append(contentsOf values: some Sequence<Value.PatchElement>) {
        operations.append(.append, property.path) { try FieldOperand.list(values) }
    }

    /// Appends a value to the list unless an element equals it. Text is equal by code point, numbers are by value, and
    /// objects by their members.
    public mutating func add(_ value: Value.PatchElement) {
        add(contentsOf: CollectionOfOne(value))
    }

    /// Appends those values to the list that equal none of its elements, each once.
    public mutating func add(contentsOf values: some Sequence<Value.PatchElement>) {
        operations.append(.add, property.path) { try FieldOperand.list(values) }
    }

    /// Removes all elements from the list that equal a value.
    public mutating func remove(_ value: Value.PatchElement) {
        remove(contentsOf: CollectionOfOne(value))
    }

    /// Removes all elements from the list that equal one of the values.
    public mutating func remove(contentsOf values: some Sequence<Value.PatchElement>) {
        operations.append(.remove, property.path) { try FieldOperand.list(values) }
    }
}
