import CRUDModel

/// A property of a model for queries: its path in the item, and its type.
///
/// Its operators and methods return conditions. A condition on a property that is missing or null is unknown, unless it
/// is a comparison with nil; a record is selected only if its condition is true: neither `$0.age == 7` nor `$0.age !=
/// 7` selects one without an age.
///
/// If its type is ``Queryable`` itself, the nested properties follow with a dot: `$0.address.city == "Paris"`. An
/// optional one needs no question mark.
@dynamicMemberLookup
public struct Property<Model, Value>: Sendable {
    let path: PropertyPath

    /// The property at `keyPath`, stored under `key`.
    ///
    /// ```swift
    /// let age = Property(\User.age, CodingKeys.age)
    /// ```
    public init(_ keyPath: KeyPath<Model, Value>, _ key: some CodingKey) {
        path = PropertyPath(names: [key.stringValue])
    }

    private init(names: [String]) {
        path = PropertyPath(names: names)
    }

    /// A property within this one.
    public subscript<Nested>(
        dynamicMember member: KeyPath<Value.Properties, Property<Value, Nested>>
    ) -> Property<Model, Nested> where Value: Queryable {
        Property<Model, Nested>(names: path.names + Value.properties[keyPath: member].path.names)
    }

    /// A property within this optional one.
    public subscript<Wrapped: Queryable, Nested>(
        dynamicMember member: KeyPath<Wrapped.Properties, Property<Wrapped, Nested>>
    ) -> Property<Model, Nested> where Value == Wrapped? {
        Property<Model, Nested>(names: path.names + Wrapped.properties[keyPath: member].path.names)
    }

    /// True if the property is missing or null.
    public var isNull: Condition<Model> { Condition(.isNull(path)) }
}

// MARK: Conditions

extension Property where Value: QueryValue {
    /// True if the property equals the value; text by code point, numbers by exact value.
    public static func == (property: Property, value: Value.Comparand) -> Condition<Model> {
        property.compared(.equal, value)
    }

    /// True if the property exists and differs from the value.
    public static func != (property: Property, value: Value.Comparand) -> Condition<Model> {
        property.compared(.notEqual, value)
    }

    /// True if the property equals one of the values.
    public func `in`(_ values: some Sequence<Value.Comparand>) -> Condition<Model> {
        Condition { .isIn(path, try values.map { try Literal(coding: $0) }) }
    }

    private func compared(_ comparison: Comparison, _ value: Value.Comparand) -> Condition<Model> {
        Condition { .comparison(comparison, path, try Literal(coding: value)) }
    }
}

/// Text is compared by code point, which is not always Swift's order. Dates are compared as the text that this client
/// stores, in the order of time; one that others have stored in another form, such as `2026-01-31T12:00:00Z`, is not
/// compared by time.
extension Property where Value: QueryValue, Value.Comparand: Comparable {
    public static func < (property: Property, value: Value.Comparand) -> Condition<Model> {
        property.compared(.less, value)
    }

    public static func <= (property: Property, value: Value.Comparand) -> Condition<Model> {
        property.compared(.lessOrEqual, value)
    }

    public static func > (property: Property, value: Value.Comparand) -> Condition<Model> {
        property.compared(.greater, value)
    }

    public static func >= (property: Property, value: Value.Comparand) -> Condition<Model> {
        property.compared(.greaterOrEqual, value)
    }

    /// True if the property is at least `low` and at most `high`.
    public func between(_ low: Value.Comparand, _ high: Value.Comparand) -> Condition<Model> {
        Condition { .between(path, try Literal(coding: low), try Literal(coding: high)) }
    }
}

extension Property where Value: ExpressibleByNilLiteral {
    /// True if the property is missing or null.
    public static func == (property: Property, value: _OptionalNilComparisonType) -> Condition<Model> {
        property.isNull
    }

    /// True if the property is neither missing nor null.
    public static func != (property: Property, value: _OptionalNilComparisonType) -> Condition<Model> {
        !property.isNull
    }
}

extension Property where Value: QueryValue, Value.Comparand == String {
    /// True if the text matches a pattern: `%` matches any run of characters, `_` one code point, and `\` escapes `%`,
    /// `_` and `\`. Case-sensitive.
    ///
    /// A `\` before anything else makes the query throw ``CRUDError/Code/invalidQuery``. A pattern has at most 1024
    /// bytes. ``hasPrefix(_:)``, ``hasSuffix(_:)`` and ``contains(_:)-(String)`` take text as it is.
    public func like(_ pattern: String) -> Condition<Model> {
        Condition(.like(path, pattern: pattern))
    }

    /// True if the text begins with another one, compared by code point.
    ///
    /// - Parameter prefix: any text, at most about 1000 bytes; nothing in it has a special meaning.
    public func hasPrefix(_ prefix: String) -> Condition<Model> {
        like(prefix.escapedForLike + "%")
    }

    /// True if the text ends with another one, compared by code point.
    ///
    /// - Parameter suffix: any text, at most about 1000 bytes; nothing in it has a special meaning.
    public func hasSuffix(_ suffix: String) -> Condition<Model> {
        like("%" + suffix.escapedForLike)
    }

    /// True if another text occurs in the text, compared by code point.
    ///
    /// - Parameter text: any text, at most about 1000 bytes; nothing in it has a special meaning.
    public func contains(_ text: String) -> Condition<Model> {
        like("%" + text.escapedForLike + "%")
    }
}

extension Property where Value: QueryList {
    /// True if an element of the list equals the value.
    public func contains(_ value: Value.ListElement.Comparand) -> Condition<Model> {
        contains(all: CollectionOfOne(value))
    }

    /// True if each of the values equals some element of the list.
    public func contains(all values: some Sequence<Value.ListElement.Comparand>) -> Condition<Model> {
        Condition { .arrayContains(path, try values.map { try Literal(coding: $0) }) }
    }
}

extension String {
    /// As a part of a pattern that matches nothing but this text.
    fileprivate var escapedForLike: String {
        // By code point: one that is combined with a wildcard does not hide it.
        var text = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            if ["%", "_", "\\"].contains(scalar) { text.append("\\") }
            text.append(scalar)
        }
        return String(text)
    }
}

// MARK: What does not exist

/// What is written by mistake, with a hint.
extension Property {
    @available(*, unavailable, message: "only a text has a prefix; compare this property with ==, < or >=")
    public func hasPrefix(_ prefix: String) -> Condition<Model> { isNull }

    @available(*, unavailable, message: "only a text has a suffix; compare this property with ==, < or >=")
    public func hasSuffix(_ suffix: String) -> Condition<Model> { isNull }

    @available(*, unavailable, message: "pass the values as one list: in([first, second])")
    public func `in`<Other>(_ first: Other, _ second: Other, _ others: Other...) -> Condition<Model> { isNull }

    @available(*, unavailable, message: "filters regard case; store a copy of the text in lower case and compare that")
    public func lowercased() -> Property { self }
}
