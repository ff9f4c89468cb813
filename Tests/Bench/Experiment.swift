import ArgumentParser

/// Something long that happens to a collection while clients use it; they are measured with it and without it.
enum Experiment: String, Codable, CaseIterable, ExpressibleByArgument {
    case move, indexes, expiry

    /// The state of the collection, for a heading.
    var heading: String {
        switch self {
        case .move: "while it is moved"
        case .indexes: "in a child, while three indexes are built"
        case .expiry: "while all records of another one expire"
        }
    }

    /// How many times the 99th percentile of latencies may be that without it; nil: nothing is promised.
    var promisedSlowdown: Double? {
        switch self {
        case .move: nil
        case .indexes: 2
        case .expiry: 3
        }
    }
}
