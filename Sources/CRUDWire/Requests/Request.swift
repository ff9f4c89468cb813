package import CRUDJSON
package import CRUDModel

/// One JSON-RPC request, as ranges of its text.
///
/// A value of this type is reused for one request after another.
package struct Request: ~Copyable {
    /// The `id` member, exactly as it was sent; nil for a notification.
    package internal(set) var id: JSONSlice?
    /// The method.
    package internal(set) var traits = Method.daemonPing.definition.traits
    /// A bit for each parameter that the request has, and the highest for `traceparent`.
    private var present: UInt64 = 0
    /// The position of each parameter, and of `traceparent` behind them; valid only where its bit is set.
    private var slots = [JSONSlice](
        repeating: JSONSlice(start: 0, end: 0, kind: .null), count: Parameter.count + 1)

    package init() {}

    /// The position of a parameter; nil if the request does not have it.
    package subscript(parameter: Parameter) -> JSONSlice? {
        present & parameter.mask == 0 ? nil : slots[parameter.rawValue]
    }

    /// The `traceparent` member, which has not been checked; see ``traceParent(_:)``.
    package internal(set) var traceparent: JSONSlice? {
        get { present & Self.traceparent == 0 ? nil : slots[Parameter.count] }
        set {
            present = newValue == nil ? present & ~Self.traceparent : present | Self.traceparent
            if let newValue { slots[Parameter.count] = newValue }
        }
    }

    private static let traceparent: UInt64 = 1 << 63

    package var method: Method { traits.method }

    /// How many bytes of text say what is stored: an item, or a patch and its field operations.
    package var contentBytes: Int {
        guard present & Self.content != 0 else { return 0 }
        var count = (self[.item] ?? self[.patch])?.count ?? 0
        for (parameter, _) in Parameter.fieldOperations { count += self[parameter]?.count ?? 0 }
        return count
    }

    private static let content = Parameter.fieldOperations.reduce(Parameter.item.mask | Parameter.patch.mask) {
        $0 | $1.parameter.mask
    }

    /// A notification is executed and gets no reply.
    package var isNotification: Bool { id == nil }

    mutating func reset() {
        id = nil
        present = 0
    }

    mutating func set(_ parameter: Parameter, _ slice: JSONSlice) {
        present |= parameter.mask
        slots[parameter.rawValue] = slice
    }

    /// Whether it has all parameters that the method requires, and none that the method does not know.
    var hasParametersOfMethod: Bool {
        present & ~(traits.allowed | Self.traceparent) == 0 && missingParameter == nil
    }

    /// The first parameter that the method requires and the request lacks.
    var missingParameter: Parameter? { traits.missing(from: present) }
}

/// A request that cannot be executed: the error to reply with, and the id.
package struct RequestError: Error {
    package var error: CRUDError
    /// The request's id where it is valid and occurs once; nil stands for null.
    package var id: JSONSlice?
    /// Errors of notifications are not sent.
    package var isNotification = false
    /// The method, where the request got that far.
    package var method: Method?

    package init(
        _ error: CRUDError, id: JSONSlice? = nil, isNotification: Bool = false, method: Method? = nil
    ) {
        self.error = error
        self.id = id
        self.isNotification = isNotification
        self.method = method
    }
}
