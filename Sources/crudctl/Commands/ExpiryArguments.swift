import ArgumentParser
import CRUDJSON

/// The expiry of a record that is written.
struct ExpiryArguments: ParsableArguments {
    @Option(help: ArgumentHelp("The record expires after this time.", valueName: "seconds")) var ttl: Double?

    func validate() throws {
        if let ttl, !(ttl > 0 && ttl < 1e10) { throw ValidationError("--ttl must be a number of seconds over 0.") }
    }

    /// The record does not expire any more.
    func writeNever(to params: inout JSONWriter) {
        params.key("ttl")
        params.null()
    }

    func write(to params: inout JSONWriter) {
        guard let ttl else { return }
        params.key("ttl")
        params.raw((Int(exactly: ttl)?.description ?? ttl.description).utf8)
    }
}
