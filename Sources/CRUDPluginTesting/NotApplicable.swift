/// Thrown by a check that finds nothing to check.
struct NotApplicable: Error {
    let text: String
}
