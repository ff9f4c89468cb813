import ArgumentParser
import CRUDModel

/// How a companion program has ended, and what it has printed.
struct CompanionOutcome {
    let program: CompanionProgram
    /// Its exit status, one of sysexits.h.
    let status: Int32
    let output: String
    let errors: String

    /// Reports its error, and ends this program with its exit status; returns if it has succeeded.
    func end(asJSON: Bool) throws {
        guard status != 0 else { return StandardError.write(errors) }
        if let error { ErrorReport(error).print(asJSON: asJSON) }
        throw ExitCode(status)
    }

    /// What it has printed on standard error; nil if that is nothing. The details are the position of the first line,
    /// `FILE:LINE:COLUMN: …`, as in the error of a reload.
    private var error: CRUDError? {
        // What follows is about its own command line.
        let lines = errors.split(separator: "\n").prefix { !$0.hasPrefix("Usage: ") && !$0.hasPrefix("Try ") }
        guard let first = lines.first else { return nil }
        let prefix = "\(program.name): "
        let message = lines.map { $0.hasPrefix(prefix) ? $0.dropFirst(prefix.count) : $0 }.joined(separator: "; ")
        return CRUDError(code, message, details: Self.position(first))
    }

    private var code: CRUDError.Code {
        switch status {
        case 64: .invalidParams
        case 69, 71: .unavailable
        case 78: .invalidConfiguration
        default: .internalError
        }
    }

    private static func position(_ line: Substring) -> CRUDError.Details {
        let words = line.prefix { $0 != " " }.split(separator: ":", omittingEmptySubsequences: false)
        // The last word is empty: it is between the last colon and the space.
        guard words.count > 3, let column = Int(words[words.count - 2]), let row = Int(words[words.count - 3]) else {
            return CRUDError.Details()
        }
        return CRUDError.Details(file: words.dropLast(3).joined(separator: ":"), line: row, column: column)
    }
}
