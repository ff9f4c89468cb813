package import CRUDJSON

/// What a patch can do to a single member of an item (PROTOCOL.md, "Field operations").
package enum FieldOperation: Int, CaseIterable, Sendable {
    case increment, minimum, maximum, append, add, remove

    /// Its member of `params`.
    package var name: StaticString {
        switch self {
        case .increment: "increment"
        case .minimum: "minimum"
        case .maximum: "maximum"
        case .append: "append"
        case .add: "add"
        case .remove: "remove"
        }
    }

    /// Whether it takes a number for each path; else it takes an array.
    package var takesNumber: Bool {
        switch self {
        case .increment, .minimum, .maximum: true
        case .append, .add, .remove: false
        }
    }
}

/// Field operations as JSON text: for each kind an object of paths and values.
package struct FieldOperationTexts: Sendable {
    /// An operation, and where its object stands in a text.
    package struct Part: Sendable {
        package var operation: FieldOperation
        package var object: JSONSlice

        package init(_ operation: FieldOperation, _ object: JSONSlice) {
            self.operation = operation
            self.object = object
        }
    }

    /// The objects, one behind the other.
    package private(set) var text: [UInt8] = []
    package private(set) var parts: [Part] = []

    package init() {}

    package var isEmpty: Bool { parts.isEmpty }

    /// Copies an object.
    ///
    /// - Parameters:
    ///   - object: where it stands in `text`, as a scanner has found it.
    package mutating func append(_ operation: FieldOperation, _ object: JSONSlice, of text: Span<UInt8>) {
        var copy = object
        copy.start = self.text.count
        self.text.append(text.extracting(object.range))
        copy.end = self.text.count
        parts.append(Part(operation, copy))
    }
}
