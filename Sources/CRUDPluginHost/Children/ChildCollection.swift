/// A collection that a child has opened.
final class ChildCollection: Sendable {
    /// What the child is told to call it.
    let number: Int

    init(number: Int) {
        self.number = number
    }
}
