import ArgumentParser
import CRUDJSON
import CRUDModel
import CRUDWire

struct Sessions: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lists the sessions of all clients, or closes some.",
        discussion: "A session that is closed gets the replies to its requests in flight first.")

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Option(
        help: ArgumentHelp("Close the session with this ID of the list; may be repeated.", valueName: "id"))
    var close: [Int] = []

    func run() async throws {
        guard close.isEmpty else { return try await closeAll() }
        try show(
            try await call("session.list"), list: "sessions",
            notations: [
                "connectedAt": .instant, "receivedBytes": .bytes, "sentBytes": .bytes, "heldBytes": .bytes,
                "quotas": .quotas,
            ])
    }

    /// One that is not there any more keeps none of the others.
    private func closeAll() async throws {
        var failure: CRUDError?
        try await withClient { client in
            for session in close {
                var params = JSONWriter()
                params.object { $0.member("session", session) }
                do {
                    _ = try await client.call("session.close", json: params.bytes)
                } catch let error as CRUDError where error.code == .invalidParams {
                    failure = failure ?? error
                    ErrorReport(error).print(asJSON: options.output == .json)
                }
            }
        }
        if let failure { throw ExitCode(failure.exitStatus) }
        try show(Array("{}".utf8))
    }
}
