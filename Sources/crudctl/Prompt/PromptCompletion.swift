import ArgumentParser
import CRUDModel
import CRUDWire

/// What may stand where the cursor of the prompt is, by the same commands and options as everywhere.
struct PromptCompletion {
    /// The words before the one that is completed.
    private let before: [String]
    /// What is there of it.
    private let word: String
    /// Global options that the prompt was started with.
    private let options: [String]

    init(_ line: PromptLine, options: [String]) {
        before = line.isInWord ? line.words.dropLast() : line.words
        word = line.isInWord ? line.words.last ?? "" : ""
        self.options = options
    }

    /// In order, all of which begin with the word.
    var candidates: [String] {
        get async {
            let all: [String] =
                if before.isEmpty {
                    Crudctl.commandNames + ["help", "exit"]
                } else if before == ["help"] {
                    Crudctl.commandNames
                } else if let usage = CommandUsage(of: before[0]) {
                    word.hasPrefix("-") ? usage.options : await names(usage)
                } else {
                    []
                }
            return Set(all.filter { $0.hasPrefix(word) }).sorted()
        }
    }

    private func names(_ usage: CommandUsage) async -> [String] {
        switch usage.argument(after: before.dropFirst()) {
        case "collection", "collections": await CompletionKind.collectionNames(options)
        case "backend": await CompletionKind.backendNames(options)
        case "method": Method.allCases.map(\.name.description)
        case "level": LogLevel.levels
        default: []
        }
    }

    /// Words side by side, in lines of at most so many columns. None is broken.
    static func lines(of words: [String], width: Int) -> [String] {
        var lines: [String] = []
        for word in words {
            if let last = lines.last, last.displayWidth + 2 + word.displayWidth <= width {
                lines[lines.count - 1] = "\(last)  \(word)"
            } else {
                lines.append(word)
            }
        }
        return lines
    }

    /// The longest text that all begin with.
    static func commonPrefix(of words: [String]) -> String {
        guard var prefix = words.first else { return "" }
        for word in words { while !word.hasPrefix(prefix) { prefix.removeLast() } }
        return prefix
    }
}

/// The arguments and options of a command, as its help names them.
struct CommandUsage {
    let options: [String]
    private let optionsWithValue: Set<String>
    private let arguments: [String]

    /// - Returns: nil if there is no such command.
    init?(of name: String) {
        let commands = Crudctl.configuration.groupedSubcommands.flatMap(\.subcommands)
        guard let index = Crudctl.commandNames.firstIndex(of: name) else { return nil }
        self.init(help: Crudctl.helpMessage(for: commands[index], columns: 10_000))
    }

    /// - Parameter help: `USAGE: crudctl read [<options>] <collection> <id>` and lines such as `--timeout <seconds> …`.
    init(help: String) {
        let lines = help.split(separator: "\n")
        let usage = lines.first { $0.hasPrefix("USAGE:") } ?? ""
        let parts = usage.split(separator: " ")
        // After an option that ends there, such as `[--raw]`, comes no value of it.
        arguments = zip(parts, parts.dropFirst()).filter { former, part in
            !former.drop { $0 == "[" }.hasPrefix("-") || former.hasSuffix("]")
        }.map { $1.filter { !"[]".contains($0) } }
            .filter { $0.hasPrefix("<") && $0 != "<options>" }.map { $0.filter { !"<>.".contains($0) } }
        var (options, withValue): ([String], Set<String>) = ([], [])
        for line in lines where line.drop(while: { $0 == " " }).hasPrefix("-") {
            let words = line.split(separator: " ").prefix { $0.hasPrefix("-") || $0.hasPrefix("<") }
            let names = words.filter { $0.hasPrefix("-") }.map { $0.filter { $0 != "," } }
            options += names.filter { $0.hasPrefix("--") }
            if words.last?.hasPrefix("<") == true { withValue.formUnion(names) }
        }
        self.options = options
        optionsWithValue = withValue
    }

    /// The name of the argument that follows these words; nil if that is the value of an option, or there is none.
    func argument(after words: ArraySlice<String>) -> String? {
        var index = 0
        var isValue = false
        for word in words {
            if isValue {
                isValue = false
            } else if word.hasPrefix("-") {
                isValue = optionsWithValue.contains(word)
            } else {
                index += 1
            }
        }
        guard !isValue, let last = arguments.last else { return nil }
        return index < arguments.count ? arguments[index] : last
    }
}
