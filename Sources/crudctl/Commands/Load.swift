import ArgumentParser
import CRUDClient
import CRUDJSON
import CRUDModel
import CRUDWire

struct Load: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Stores the records of a dump and prints how many.",
        discussion: """
            The whole dump is checked before the first record is written; what cannot be read twice is copied to a \
            temporary file in $TMPDIR or /var/tmp. Records that have expired since are left out. A load that fails \
            says how many records were written; with --upsert it can be repeated.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The dump; - (or nothing) for standard input.", completion: .file()) var file = "-"
    @Option(
        help: ArgumentHelp("Load the records into this collection.", valueName: "collection"), completion: .collections)
    var into: String?
    @OptionGroup var mode: LoadMode

    func run() async throws {
        let result = try await withClient { client in
            let display = ProgressDisplay.onTerminal()
            let source = file == "-" ? "standard input" : file
            defer { display?.end() }
            let limits = try await DaemonLimits(of: client)
            let input = try DumpInput(file) { bytes in
                display?.show([ProgressLine(name: source, phase: "reading", mebibytes: bytes >> 20)])
            }
            let check: DumpCheck
            do {
                check = try DumpCheck(input, limits, isSingle: into != nil) { records, fraction in
                    display?.show([ProgressLine(name: source, phase: "checking", records: records, fraction: fraction)])
                }
            } catch let error as CRUDError {
                throw error.with("nothing was written")
            }
            var run = LoadRun(client, limits, mode, total: check.records, display: display)
            return try await run.load(input, into: into)
        }
        try show(result, list: "loaded")
    }
}

/// What a load does with a record that exists already.
struct LoadMode: ParsableArguments {
    @Flag(help: "Fail if a record exists already (default).") var create = false
    @Flag(help: "Replace records that exist already.") var upsert = false

    func validate() throws {
        if create, upsert { throw ValidationError("Give either --create or --upsert.") }
    }

    /// The operation of `record.batch`.
    var action: String { upsert ? "upsert" : "create" }
}
