/// A reply that cannot be true.
struct Violation: Error, CustomStringConvertible {
    let description: String
}
