/// Thrown by a check that finds nothing to check.
struct NotApplicable: Error {
    let text: String

    /// By a check of numbers that the host gives.
    static let numbersItself = NotApplicable(text: "the storage numbers changes itself")
}
