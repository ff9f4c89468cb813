import ArgumentParser
import CRUDJSON
import CRUDModel

/// The selected records of a command.
struct SelectionArguments: ParsableArguments {
    @Argument(help: "The collection's name.", completion: .collections) var collection: String
    @Option(
        name: .customLong("where"),
        help: ArgumentHelp(
            "Only records whose item satisfies this, such as age >= 18 AND name LIKE 'B%'.", valueName: "cql2"))
    var condition: String?
    @Option(help: "Only records whose id begins with this.") var prefix: String?

    /// Whether it says anything.
    var isGiven: Bool { condition != nil || prefix != nil }

    /// Whether it excludes records for a reason: an empty prefix, as of a variable that is not set, does not.
    ///
    /// - Throws: `invalid_query` for a condition that is not valid CQL2 text.
    func isRestricted() throws -> Bool {
        try prefix?.isEmpty == false || condition.map { try !Filter(cql2Text: $0).isConstant } ?? false
    }

    /// The function that writes the members of `params`.
    ///
    /// - Throws: `invalid_query` for a condition that is not valid CQL2 text, with the column.
    func members() throws -> (inout JSONWriter) -> Void {
        let filter = try condition.map { Array(try Filter(cql2Text: $0).cql2JSON.utf8) }
        return { params in
            params.member("collection", collection)
            if let filter {
                params.key("filter")
                params.raw(filter)
            }
            if let prefix { params.member("prefix", prefix) }
        }
    }
}
