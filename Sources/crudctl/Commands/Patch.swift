import ArgumentParser
import CRUDJSON

struct Patch: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Changes members of a record's item and prints the new item.",
        discussion: """
            ITEM is a JSON Merge Patch (RFC 7396): a member sets the member with its name, null removes it, and \
            members that ITEM lacks are kept. So is the record's expiry without --ttl and --no-ttl.

            --increment and the other options with a PATH change single members of what is stored at that time, after \
            ITEM, which may be left out then: crudctl patch clients ada --increment visits=1 --add 'tags="regular"'. \
            They may be repeated. A missing member counts as 0, or as an empty array. Names in a PATH are separated by \
            dots; a dot in a name is \\., a backslash \\\\.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var record: RecordArguments
    @Argument(help: .item) var item: String?
    @OptionGroup(title: "Field operations") var fields: FieldOperationArguments
    @OptionGroup var precondition: Precondition
    @OptionGroup var expiry: ExpiryArguments
    @Flag(name: .customLong("no-ttl"), help: "The record does not expire any more.") var noExpiry = false
    @Flag(help: "Start with {} if there is no such record.") var upsert = false

    func validate() throws {
        if noExpiry, expiry.ttl != nil { throw ValidationError("Give either --ttl or --no-ttl.") }
    }

    func run() async throws {
        let fields = try fields.members()
        let hasItem = item != nil || self.fields.isEmpty
        try await write("record.patch", record, hasItem ? item ?? "-" : nil, as: "patch") { params in
            fields(&params)
            precondition.write(to: &params)
            if upsert { params.member("upsert", true) }
            expiry.write(to: &params)
            if noExpiry { expiry.writeNever(to: &params) }
        }
    }
}
