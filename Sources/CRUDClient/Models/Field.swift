/// An optional member with three states: it keeps the stored value, removes it, or sets it.
///
/// ```swift
/// struct Presence: Codable {
///     @Field var isOnline: Bool? = nil
///     @Field var status: String? = nil
/// }
///
/// var presence = Presence()             // keeps both: they are absent
/// presence.isOnline = true              // sets it
/// presence.status = nil                 // removes it
/// presence.$status = .absent            // keeps it after all
/// ```
///
/// It is ``State/absent`` unless it is given a value. With `= nil` the memberwise initialiser of the model has an
/// optional for it, `Presence(isOnline: true)`; without, it has the `Field` itself. Assigning nil makes it
/// ``State/null``; with `$` before the name the state itself can be read and set.
///
/// Absent keeps the stored value wherever members are stored in an existing record: by
/// ``Repository/persist(_:)->Model``, ``Repository/patch(id:with:ifRevision:)`` and ``Repository/modify(id:_:)``.
///
/// It needs no `init(from:)` or `encode(to:)` of the model: absent is a missing member, null is `null`.
@propertyWrapper
public struct Field<Value> {
    /// What a ``Field`` does to the stored value.
    public enum State {
        /// Keeps it.
        case absent
        /// Removes it.
        case null
        /// Sets it.
        case value(Value)
    }

    /// The state.
    public var projectedValue: State

    /// The value; nil if it is absent or null. Assigning nil makes it null.
    public var wrappedValue: Value? {
        get {
            if case .value(let value) = projectedValue { value } else { nil }
        }
        set { projectedValue = newValue.map(State.value) ?? .null }
    }

    /// A field that is absent.
    public init() {
        projectedValue = .absent
    }

    /// A field with a value; an absent one if that is nil.
    public init(wrappedValue: Value?) {
        projectedValue = wrappedValue.map(State.value) ?? .absent
    }

    /// A field in a given state, for a memberwise initialiser of your own: `_status = Field(state)`.
    public init(_ state: State) {
        projectedValue = state
    }
}

extension Field: Sendable where Value: Sendable {}
extension Field: Equatable where Value: Equatable {}
extension Field: Hashable where Value: Hashable {}
extension Field.State: Sendable where Value: Sendable {}
extension Field.State: Equatable where Value: Equatable {}
extension Field.State: Hashable where Value: Hashable {}

// MARK: Coding

// The compiler synthesises a model's coding with decode(_:forKey:) and encode(_:forKey:) of its containers. Of their
// overloads it selects the most specific ones, which for a Field are those below: only they recognise a missing member.

extension KeyedDecodingContainer {
    public func decode<Value: Decodable>(_ type: Field<Value>.Type, forKey key: Key) throws -> Field<Value> {
        guard contains(key) else { return Field(.absent) }
        return try decodeNil(forKey: key) ? Field(.null) : Field(.value(decode(Value.self, forKey: key)))
    }
}

extension KeyedEncodingContainer {
    public mutating func encode<Value: Encodable>(_ field: Field<Value>, forKey key: Key) throws {
        switch field.projectedValue {
        case .absent: AbsentFields.current?.add(codingPath + [key])
        case .null: try encodeNil(forKey: key)
        case .value(let value): try encode(value, forKey: key)
        }
    }
}

extension Field: Decodable where Value: Decodable {
    /// Decodes outside of an object, where nothing can be absent.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        self.init(container.decodeNil() ? .null : .value(try container.decode(Value.self)))
    }
}

extension Field: Encodable where Value: Encodable {
    /// Encodes outside of an object, where absent becomes null.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if case .value(let value) = projectedValue {
            try container.encode(value)
        } else {
            try container.encodeNil()
        }
    }
}
