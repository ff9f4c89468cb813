import ArgumentParser
import CRUDModel
import CRUDWire
import Glibc

/// Where a command's text comes from.
enum TextSource {
    case argument(String)
    case file(String)
    case standardInput

    /// More than the largest frame that any daemon accepts.
    private static let maximumBytes = 1 << 30

    /// JSON text, `@FILE`, or `-` for standard input.
    init(json argument: String) {
        self = argument.hasPrefix("@") ? .file(String(argument.dropFirst())) : Self(file: argument, or: Self.argument)
    }

    /// A file, or `-` for standard input.
    init(file argument: String) {
        self.init(file: argument, or: Self.file)
    }

    private init(file argument: String, or other: (String) -> Self) {
        self = argument == "-" ? .standardInput : other(argument)
    }

    /// The text, checked to be JSON.
    ///
    /// - Parameter what: what it is, for the message.
    func json(_ what: String) throws -> [UInt8] {
        let text = try text("\(what) (JSON)")
        do {
            try RawJSON.check(text, what: what)
        } catch {
            // A word that the shell has taken the quotation marks from, or that never had any.
            guard case .argument(let word) = self, word.first?.isLetter == true, !word.contains("\"") else {
                throw error
            }
            throw CRUDError(error.code, #"\#(error.message); a string has quotation marks: '"…"'"#)
        }
        return text
    }

    /// - Parameter what: what it is, for whoever is to type it.
    func text(_ what: String) throws -> [UInt8] {
        switch self {
        case .argument(let text): return Array(text.utf8)
        case .standardInput:
            if isatty(STDIN_FILENO) == 1 {
                StandardError.write("crudctl: reading \(what) from the terminal; end it with Ctrl-D\n")
            }
            return try Self.read(STDIN_FILENO, "standard input")
        case .file(let path):
            let file = open(path, O_RDONLY | O_CLOEXEC)
            guard file >= 0 else { throw ValidationError("cannot read \(path): \(ErrorNumber.message)") }
            defer { close(file) }
            return try Self.read(file, path)
        }
    }

    static func read(_ file: Int32, _ name: String) throws -> [UInt8] {
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = FileInput.read(file, into: &chunk)
            if count == 0 { return text }
            guard count > 0 else { throw ValidationError("cannot read \(name): \(ErrorNumber.message)") }
            text += chunk[..<count]
            guard text.count <= maximumBytes else {
                throw ValidationError("\(name) is larger than any request may be")
            }
        }
    }
}
