import ArgumentParser
import CRUDJSON
import CRUDModel
import CRUDWire

struct Reload: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Makes the daemon read its configuration again and prints the changes.",
        discussion: """
            With --move, collections that the file maps to another backend or format are moved while the daemon \
            serves them; the command shows how far they are and waits until they are over. The moves continue \
            without it. The exit status is 75 if a move is suspended, which the daemon retries, and 65 if one has \
            failed.

            With --dry-run nothing is changed: the command prints what the reload would do, and ends with status 78 if \
            it would be rejected.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Flag(help: "Reload even if records of a collection would be orphaned.") var force = false
    @Flag(help: "Move the records of collections that the file maps to another place.") var move = false
    @Flag(help: "Do not wait until the moves are over.") var detach = false
    @Flag(name: .customLong("dry-run"), help: "Print what the reload would do; nothing is changed.")
    var isDryRun = false

    func validate() throws {
        if detach, isDryRun { throw ValidationError("Give either --detach or --dry-run.") }
        if detach, !move { throw ValidationError("--detach applies to moves: give --move too.") }
    }

    func run() async throws {
        var params = JSONWriter()
        params.object { params in
            if force { params.member("force", true) }
            if move { params.member("move", true) }
            if isDryRun { params.member("dryRun", true) }
        }
        guard !isDryRun else { return try await showDryRun(params.bytes) }
        let stuck = try await withClient { client in
            let result = try await client.call("daemon.reload", json: params.bytes)
            try show(result, list: "changes")
            guard move, !detach else { return nil as CRUDError? }
            // The moves may take long: what has changed is shown before they are followed.
            Pager.finish()
            var following = MoveFollowing(ResultObject(result)?.strings("moves") ?? [], client)
            return try await following.run()
        }
        guard let stuck else { return }
        ErrorReport(stuck).print(asJSON: options.output == .json)
        throw ExitCode(75)
    }

    private func showDryRun(_ params: [UInt8]) async throws {
        let result = try await call("daemon.reload", params: params)
        guard let outcome = ResultObject(result) else {
            throw CRUDError(.internalError, "the daemon's reply does not say what a reload would do")
        }
        if printer.format == .table {
            let text = DryRunText.lines(of: outcome).map { $0.withVisibleControls + "\n" }.joined()
            try StandardOutput.page(Array(text.utf8), isComposed: false)
        } else {
            try show(result)
        }
        let refusals = outcome.strings("refusals") ?? []
        guard !refusals.isEmpty else { return }
        for refusal in refusals {
            StandardError.write("crudctl: the reload would be rejected: \(refusal.withVisibleControls)\n")
        }
        throw ExitCode(78)
    }
}
