/// A reply that cannot be true.
package struct Violation: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
}
