/// The ``CRUDError/cause`` of an error that was thrown because a call got no reply by its deadline.
public struct DeadlineExceeded: Error, CustomStringConvertible {
    public init() {}

    public var description: String { "deadline exceeded" }
}
