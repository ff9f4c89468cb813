import ArgumentParser
import CRUDModel

/// The words of a command line, as far as they are understood before they are parsed.
struct CommandLineWords {
    /// The words with global options moved behind the command, which has them too.
    let words: [String]
    /// The command; nil if there is none, or an unknown option before it.
    private let command: String?

    private static let optionsWithValue = ["--socket", "--output", "-o", "--timeout"]
    private static let flags = ["--no-color", "--no-pager"]

    init(_ words: [String]) {
        let words = Self.separatingNumber(words)
        if let index = Self.command(in: words[...]) {
            let rest = words[(index + 1)...]
            // `help` has the command as its argument.
            command = words[index] == "help" ? Self.command(in: rest).map { words[$0] } ?? "help" : words[index]
            self.words = [words[index]] + words[..<index] + rest
        } else {
            command = nil
            self.words = words
        }
    }

    /// The words with `--` before a number at their end that begins with a dash, such as the item `-1`: no option is
    /// a digit.
    private static func separatingNumber(_ words: [String]) -> [String] {
        guard let last = words.last, last.hasPrefix("-"), let digit = last.utf8.dropFirst().first,
            UInt8(ascii: "0")...UInt8(ascii: "9") ~= digit, !words.contains("--"),
            // It may be the value of an option.
            words.dropLast().last?.hasPrefix("-") == false
        else { return words }
        return words.dropLast() + ["--", last]
    }

    /// The index of the first word that is neither a global option nor its value; nil if that is another option.
    private static func command(in words: ArraySlice<String>) -> Int? {
        var index = words.startIndex
        while index < words.endIndex {
            let word = words[index]
            if optionsWithValue.contains(word) {
                index += 2
            } else if flags.contains(word) || optionsWithValue.contains(where: { word.hasPrefix("\($0)=") }) {
                index += 1
            } else {
                return word.hasPrefix("-") ? nil : index
            }
        }
        return nil
    }

    /// The global options of a line that has nothing else; nil for any other line.
    var optionsAlone: [String]? {
        let isWhole = command == nil && !words.contains { ["-h", "--help", "--version"].contains($0) }
        return isWhole && Self.command(in: words[...] + ["end"]) == words.count ? words : nil
    }

    /// Whether results and errors are to be JSON explicitly; known also where the line is wrong otherwise.
    var asksForJSON: Bool {
        let words = words.prefix { $0 != "--" }
        return words.contains { $0 == "-o=json" || $0 == "--output=json" }
            || zip(words, words.dropFirst()).contains { ["-o", "--output"].contains($0) && $1 == "json" }
    }

    /// - Throws: `ValidationError` if an argument of this process is not valid UTF-8, in place of which `words` have
    ///   U+FFFD: such an id would be that of another record.
    func checkEncoding() throws {
        for index in 1..<max(1, Int(CommandLine.argc)) {
            // There are as many arguments, each ends with a 0, and nobody changes them.
            let text = unsafe CommandLine.unsafeArgv[index].flatMap { unsafe String(validatingCString: $0) }
            if text == nil { throw ValidationError("argument \(index) is not valid UTF-8") }
        }
    }

    /// The error of an unknown command, which names the nearest one. Parsing would not find it where help is asked for.
    var unknownCommand: CRUDError? {
        let known = Crudctl.commandNames + ["help"]
        guard let command, !known.contains(command) else { return nil }
        let hint = nearestName(to: command.utf8, among: known).map { "did you mean \"\($0)\"?" }
        return CRUDError(
            .invalidParams, "unknown command \"\(command)\", \(hint ?? "crudctl --help lists all commands")")
    }

    /// The error of a line that cannot be parsed.
    ///
    /// - Parameter message: what the parser says.
    func usageError(_ message: String) -> CRUDError {
        let help = (["crudctl"] + (command.map { [$0] } ?? []) + ["--help"]).joined(separator: " ")
        return CRUDError(.invalidParams, "\(message) (see \(help))")
    }
}
