import ArgumentParser
import CRUDClient
import CRUDJSON
import CRUDModel
import CRUDWire

struct Import: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Stores the rows of a CSV file, or of a table of a SQLite file, as records and prints how many.",
        discussion: """
            The file is as RFC 4180 has it, in UTF-8, and its first row names the columns. Each row becomes an object \
            with a member for each column but that of the ids. Fields are texts unless --type says otherwise; one that \
            is empty is left out, and "" in quotation marks is an empty text. The whole file is checked before the \
            first record is written: the first error is reported with its row and column. Where the backend has \
            transactions, each batch of rows is written as a whole or not at all. With --table the file is one of \
            SQLite, which the program sqlite3 reads: a NULL is left out, and in messages row 1 is that of the names.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions
    @Argument(help: "The collection's name.", completion: .collections) var collection: String
    @Argument(help: "The CSV file; - (or nothing) for standard input.", completion: .file()) var file = "-"
    @Option(help: ArgumentHelp("FILE is a SQLite file, and this its table.", valueName: "name")) var table: String?
    @Option(help: ArgumentHelp("The column whose fields are the ids.", valueName: "column")) var id: String
    @Option(
        name: .customLong("type"),
        help: ArgumentHelp(
            "What a column has: string, integer, number, boolean or json. May be repeated.",
            valueName: "column=type"))
    var types: [String] = []
    @Flag(name: .customLong("keep-id"), help: "Store the column of the ids in the items too.") var keepsID = false
    @Option(help: ArgumentHelp("What separates fields: one ASCII character, or tab.", valueName: "character"))
    var separator = ","
    @OptionGroup var mode: LoadMode

    func validate() throws {
        _ = try kinds
        _ = try separatorByte
        if table != nil, file == "-" { throw ValidationError("--table needs a SQLite file.") }
        if table != nil, separator != "," { throw ValidationError("--table and --separator exclude each other.") }
        if let violation = Naming.violation(
            Array(collection.utf8).span, maximum: Naming.maximumCollectionNameBytes)
        {
            throw ValidationError("The collection's name \(violation).")
        }
    }

    func run() async throws {
        let table = ImportedTable.Options(
            collection: collection, id: id, keepsID: keepsID, kinds: try kinds, separator: try separatorByte)
        let result = try await withClient { client in
            let display = ProgressDisplay.onTerminal()
            let source = file == "-" ? "standard input" : file
            defer { display?.end() }
            let limits = try await DaemonLimits(of: client)
            let showReading = { (bytes: Int) in
                display?.show([ProgressLine(name: source, phase: "reading", mebibytes: bytes >> 20)]) ?? ()
            }
            let input =
                if let name = self.table {
                    try SQLiteTable(name, in: file, progress: showReading).input
                } else {
                    try DumpInput(file, holding: "a table", progress: showReading)
                }
            let imported: ImportedTable
            do {
                imported = try ImportedTable(input, table, limits) { records, fraction in
                    display?.show([ProgressLine(name: source, phase: "checking", records: records, fraction: fraction)])
                }
            } catch let error as CRUDError {
                throw error.with("nothing was written")
            }
            var run = LoadRun(client, limits, mode, of: .table, total: imported.records, display: display)
            run.isAtomic = await hasTransactions(client)
            return try await run.load(imported.dump, into: nil)
        }
        try show(result, list: "loaded")
    }

    /// Whether the collection's backend has transactions, as far as this user may know.
    private func hasTransactions(_ client: Client) async -> Bool {
        var params = JSONWriter()
        params.object { $0.member("collection", collection) }
        let reply = try? await client.call("collection.describe", json: params.bytes)
        return reply.flatMap { ResultObject($0)?.strings("capabilities") }?.contains("transactions") == true
    }

    private var kinds: [(name: String, kind: ImportColumn.Kind)] {
        get throws {
            try types.map { text in
                guard let equals = text.lastIndex(of: "="), equals > text.startIndex,
                    let kind = ImportColumn.Kind(rawValue: String(text[text.index(after: equals)...]))
                else {
                    let kinds = ImportColumn.Kind.allCases.map(\.rawValue).joined(separator: ", ")
                    throw ValidationError("--type needs COLUMN=TYPE, where TYPE is one of \(kinds).")
                }
                return (String(text[..<equals]), kind)
            }
        }
    }

    private var separatorByte: UInt8 {
        get throws {
            if separator == "tab" { return UInt8(ascii: "\t") }
            guard separator.utf8.count == 1, let byte = separator.utf8.first, byte >= 0x20, byte < 0x7F,
                byte != UInt8(ascii: "\"")
            else { throw ValidationError("--separator needs one ASCII character, or the word tab.") }
            return byte
        }
    }
}
