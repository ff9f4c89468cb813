import ArgumentParser
import CRUDClient
import CRUDJSON
import CRUDWire

struct QueryCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "query", abstract: "Prints the records that match, one page or all pages.",
        discussion: """
            In the names of --sort and --fields, \\ takes the meaning from a comma, a dot, a backslash, and a dash at \
            the beginning. A note says which of these names no printed record has (with --fields: of those).
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var selection: SelectionArguments
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Sort by these properties, with - before descending ones (default: by id).", valueName: "name,-age"))
    var sort: String?
    @Option(help: ArgumentHelp("The maximum number of records of a page (default: 1000).", valueName: "n")) var limit:
        Int?
    @Option(help: ArgumentHelp("Print these members of the items only.", valueName: "a,b.c")) var fields: String?
    @Option(help: "Continue after the page that had this cursor.") var cursor: String?
    @Flag(help: "Print all pages.") var all = false
    @Flag(help: "Print the plan of the query too.") var explain = false

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit must be at least 1.") }
        for key in sort.map(PropertyNames.sortKeys) ?? [] {
            if key.property.isEmpty { throw ValidationError("--sort has an empty name.") }
            let words = key.property.split(separator: " ")
            if words.count > 1, let order = words.last?.lowercased(), ["asc", "desc"].contains(order) {
                let hint = "--sort \(words[0]) sorts in ascending order, --sort -\(words[0]) in descending order."
                throw ValidationError(hint)
            }
        }
        if all, explain { throw ValidationError("--explain applies to a single page: leave out --all.") }
    }

    func run() async throws {
        let members = try selection.members()
        try await withClient { client in
            var pages = PageWriter(printer, hasAllPages: all)
            var unseen = UnseenProperties(namedProperties)
            var cursor = cursor
            repeat {
                var params = JSONWriter()
                params.object { params in
                    members(&params)
                    write(to: &params, cursor)
                }
                let text = try await client.call("record.query", json: params.bytes)
                guard let page = ResultObject(text) else {
                    throw CRUDError(.internalError, "the daemon's reply is not a page of records")
                }
                try pages.write(page)
                try unseen.read(page)
                cursor = page.string("cursor")
            } while all && cursor != nil && !Pager.hasEnded
            try pages.end(hasMore: cursor != nil && !Pager.hasEnded)
            unseen.note()
            if !pages.hasRecords, cursor == nil { await UnknownCollection.note(selection.collection, client) }
        }
    }

    /// Those that the items have to show: with `--fields` they have no others.
    private var namedProperties: [String] {
        if let fields { return PropertyNames(fields).names }
        return (sort.map(PropertyNames.sortKeys) ?? []).map { $0.property }
    }

    private func write(to params: inout JSONWriter, _ cursor: String?) {
        if let sort {
            params.key("sort")
            params.array { keys in
                for key in PropertyNames.sortKeys(sort) {
                    keys.object { object in
                        object.member("property", key.property)
                        object.member("order", key.descends ? "desc" : "asc")
                    }
                }
            }
        }
        if let limit { params.member("limit", limit) }
        if let fields { params.member("fields", strings: PropertyNames(fields).names) }
        if let cursor { params.member("cursor", cursor) }
        if explain { params.member("explain", true) }
    }
}
