import CRUDModel
import Glibc

/// What `crudctl` is alone on a terminal: each line is a command, which a process of its own executes.
struct Prompt {
    private var terminal: PromptTerminal
    private var history = PromptHistory()
    /// The global options of each command.
    private let options: [String]

    /// - Returns: nil where there is no terminal to type on.
    init?(options: [String]) {
        guard let terminal = PromptTerminal() else { return nil }
        self.terminal = terminal
        self.options = options
    }

    /// Executes what is typed, until the user ends it.
    mutating func run() async throws {
        try terminal.write("crudctl \(CRUDVersion.current): help lists the commands, Tab completes, exit ends\n")
        while let line = try await readLine() {
            history.append(line)
            let words = PromptLine(Array(line))
            if let quote = words.openQuote {
                StandardError.write("crudctl: the quotation mark \(quote) has no end\n")
                continue
            }
            let command = words.words.first == "crudctl" ? Array(words.words.dropFirst()) : words.words
            if command == ["exit"] || command == ["quit"] { return }
            if !command.isEmpty { try Self.execute(options + command) }
        }
    }

    /// Runs crudctl with these words until it exits. It gets Ctrl-C, and this program does not.
    private static func execute(_ words: [String]) throws {
        let handlers = [SIGINT, SIGQUIT].map { ($0, signal($0, SIG_IGN)) }
        defer { for (number, handler) in handlers { signal(number, handler) } }
        _ = try SpawnedProgram(CompanionProgram.ownPath ?? "crudctl", ["crudctl"] + words).wait()
    }

    // MARK: Typing

    /// - Returns: nil at the end.
    private mutating func readLine() async throws -> String? {
        terminal.begin()
        defer { terminal.restore() }
        var line = EditedLine(history: history.lines)
        var hasCompleted = false
        while true {
            try terminal.draw(line)
            let key = terminal.key()
            switch line.press(key) {
            case .changed: break
            case .entered:
                try terminal.write("\n")
                return String(line.text)
            case .cancelled:
                try terminal.write("^C\n")
                line = EditedLine(history: history.lines)
            case .ended:
                try terminal.write("\n")
                return nil
            case .clearsScreen: try terminal.clear()
            case .completes: try await complete(&line, listsAll: hasCompleted)
            }
            hasCompleted = key == .tab
        }
    }

    /// - Parameter listsAll: whether Tab was pressed twice.
    private func complete(_ line: inout EditedLine, listsAll: Bool) async throws {
        let typed = PromptLine(Array(line.text[..<line.cursor]))
        let candidates = await PromptCompletion(typed, options: options).candidates
        guard let first = candidates.first else { return }
        if candidates.count == 1 {
            line.replace(from: typed.lastWordStart, with: PromptLine.quoted(first) + " ")
            return
        }
        let prefix = PromptCompletion.commonPrefix(of: candidates)
        let word = typed.isInWord ? typed.words.last ?? "" : ""
        if prefix.count > word.count {
            line.replace(from: typed.lastWordStart, with: PromptLine.quoted(prefix))
        } else if listsAll {
            let lines = PromptCompletion.lines(of: candidates.map(\.withVisibleControls), width: terminal.width)
            try terminal.write("\n\(lines.joined(separator: "\n"))\n")
        }
    }
}
