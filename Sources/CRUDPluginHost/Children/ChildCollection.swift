/// A collection that a child has opened.
final class ChildCollection: Sendable {
    /// Which collection of the child's storage it is.
    struct Key: Hashable {
        let name: [UInt8]
        let format: [UInt8]
    }

    /// What the child is told to call it.
    let number: Int

    init(number: Int) {
        self.number = number
    }
}
