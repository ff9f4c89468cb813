import CRUDTestSupport

/// A backend and a format.
struct Place: Hashable, CustomStringConvertible {
    var backend: String
    var format: String

    var description: String { "\(backend)/\(format)" }

    /// Whether a feed of changes outlives a move between it and another such place.
    var keepsFeeds: Bool { ["main", "other", "kid", "spare"].contains(backend) }

    init(_ backend: String, _ format: String) {
        self.backend = backend
        self.format = format
    }

    init?(_ json: JSON?) {
        guard let backend = json?["backend"]?.string, let format = json?["format"]?.string else { return nil }
        self.init(backend, format)
    }
}

/// What the configuration file says of backends and collections.
struct Layout: Equatable {
    struct Rule: Equatable {
        var place: Place
        var indexes: [String] = []
        /// Whether changes are remembered.
        var changes = false

        fileprivate var text: String {
            var members = ["backend: \(place.backend)", "format: \(place.format)"]
            if !indexes.isEmpty { members.append("indexes: [\(indexes.joined(separator: ", "))]") }
            if changes { members.append("changes: true") }
            return "{\(members.joined(separator: ", "))}"
        }
    }

    static let formats = ["json", "xml", "plist"]
    /// Backends that the file always has.
    static let backends = ["main", "other", "files", "kid", "memory"]

    /// Whether the file has the backend `spare`.
    var hasSpare = false
    var rules: [String: Rule]

    /// The names of all backends.
    var backends: [String] { Self.backends + (hasSpare ? ["spare"] : []) }

    private static let definitions = [
        "main": "{plugin: sqlite, options: {path: $DIRECTORY/main.sqlite, synchronous: off}}",
        "other": "{plugin: sqlite, options: {path: $DIRECTORY/other.sqlite, synchronous: off}}",
        "files": "{plugin: filesystem, options: {directory: $DIRECTORY/files, fsync: false}}",
        "kid": """
        {plugin: sqlite, isolation: process, limits: {call_timeout: 5s}, \
        options: {path: $DIRECTORY/kid.sqlite, synchronous: off}}
        """,
        "memory": "{plugin: memory}",
        "spare": "{plugin: sqlite, options: {path: $DIRECTORY/spare.sqlite, synchronous: off}}",
    ]

    /// - Parameter misspelt: a collection whose name is wrong in the file.
    func configuration(misspelling misspelt: String? = nil) -> Configuration {
        Configuration(
            backends: backends.map { "\($0): \(Self.definitions[$0] ?? "")" }.joined(separator: "\n"),
            collections: rules.sorted { $0.key < $1.key }.map { name, rule in
                "\(name == misspelt ? name + name : name): \(rule.text)"
            }.joined(separator: "\n"))
    }
}
