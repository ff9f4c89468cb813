/// The daemon's command line: a handful of options, parsed here so that the daemon links no Foundation, which every
/// argument parser needs.
struct Arguments {
    enum Task: Equatable {
        case serve, check, help, version
    }

    private(set) var task = Task.serve
    /// The configuration file.
    private(set) var configuration = "/etc/crudd/crudd.yaml"
    /// Whether the check is of a file that the command line names, perhaps a draft.
    private(set) var checksNamedFile = false
    /// Whether a check executes the commands that the configuration names.
    private(set) var runsCommands = false
    /// Whether to start although records would be orphaned.
    private(set) var force = false
    /// Whether to move collections whose place the configuration changes.
    private(set) var move = false

    static let help = """
        Usage: crudd [--config FILE] [--force] [--move]
               crudd --check [FILE] [--run-commands]
        Serves CRUD on a Unix socket, with storage adapters as plugins.

          --config FILE   the configuration (default: /etc/crudd/crudd.yaml)
          --check [FILE]  check the configuration, its plugins and their options, touching no storage, and exit
          --run-commands  with --check: have each command of a backend check its options, too, which executes it
          --force         start although the configuration orphans records
          --move          move the records of collections that the configuration puts elsewhere
          --version       print the version and exit
          --help          print this and exit

        Exit statuses: 0 success, 64 wrong usage, 69 another daemon is running, or a plugin that is to be checked does
        not reply, 71 the system is out of a resource, 78 the configuration has an error.

        """

    /// - Throws: ``UsageError``.
    init(_ words: some Sequence<String>) throws(UsageError) {
        var words = Array(words)[...]
        var isConfigured = false
        while let word = words.popFirst() {
            let parts = word.split(separator: "=", maxSplits: 1)
            let option = parts.first.map(String.init) ?? ""
            let attached = parts.count == 2 ? String(parts[1]) : nil
            switch option {
            case "--config":
                guard let file = attached ?? words.popFirst() else { throw UsageError("--config needs a file") }
                if isConfigured { throw UsageError("there is more than one --config") }
                isConfigured = true
                configuration = file
            case "--check":
                task = .check
                if let file = attached ?? words.first, attached != nil || !file.hasPrefix("-") {
                    configuration = file
                    checksNamedFile = true
                    if attached == nil { words.removeFirst() }
                }
            case "--run-commands" where attached == nil: runsCommands = true
            case "--force" where attached == nil: force = true
            case "--move" where attached == nil: move = true
            case "--version" where attached == nil: task = .version
            case "--help" where attached == nil, "-h" where attached == nil: task = .help
            default: throw UsageError("unknown argument \(word)")
            }
        }
        if runsCommands, task == .serve { throw UsageError("--run-commands goes with --check") }
    }
}

/// A command line that cannot be parsed.
struct UsageError: Error {
    let message: String

    init(_ message: String) {
        self.message = message
    }
}
