import ArgumentParser
import CRUDJSON

struct Touch: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Sets when a record expires, and changes nothing else.",
        discussion: "The record gets a new revision, as with every write: crudctl touch sessions s1 --ttl 3600")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @OptionGroup var record: RecordArguments
    @OptionGroup var precondition: Precondition
    @OptionGroup var expiry: ExpiryArguments
    @Flag(name: .customLong("no-ttl"), help: "The record does not expire any more.") var noExpiry = false

    func validate() throws {
        if noExpiry == (expiry.ttl != nil) { throw ValidationError("Give either --ttl or --no-ttl.") }
    }

    func run() async throws {
        try await write("record.touch", record, nil) { params in
            precondition.write(to: &params)
            if noExpiry { expiry.writeNever(to: &params) } else { expiry.write(to: &params) }
        }
    }
}
