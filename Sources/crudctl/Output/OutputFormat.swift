import ArgumentParser

/// How a result is printed.
enum OutputFormat: String, CaseIterable, ExpressibleByArgument {
    /// As the daemon has sent it, digit for digit.
    case json
    /// Each element of a list on a line of its own.
    case ndjson
    /// For people.
    case table
    case yaml
}
