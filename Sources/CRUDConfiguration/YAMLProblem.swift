import CRUDModel
import CYAML

/// What is wrong with the syntax of a file: the commonest mistakes in words that say what to do, the others in those of
/// libyaml, which name the states of its parser.
struct YAMLProblem {
    private let problem: String
    /// What libyaml was doing; empty if it does not say.
    private let context: String
    private let problemPosition: SourcePosition
    private let contextPosition: SourcePosition
    /// What stands at the position of the problem; nil at the end.
    private let character: Unicode.Scalar?
    /// The innermost `[` or `{` that is not closed.
    private let bracket: (sign: Unicode.Scalar, position: SourcePosition)?

    /// - Parameters:
    ///   - parser: a parser that has failed.
    ///   - text: its input.
    ///   - open: where the containers begin that have not ended.
    init(_ parser: yaml_parser_t, _ text: [UInt8], open: [SourcePosition]) {
        problem = parser.problem.map { String(cString: $0) } ?? "the text is not valid YAML"
        context = parser.context.map { String(cString: $0) } ?? ""
        problemPosition = SourcePosition(parser.problem_mark)
        contextPosition = SourcePosition(parser.context_mark)
        let lines = text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        func character(at position: SourcePosition) -> Unicode.Scalar? {
            guard lines.indices.contains(position.line - 1) else { return nil }
            let line = String(decoding: lines[position.line - 1], as: UTF8.self).unicodeScalars
            return line.dropFirst(position.column - 1).first
        }
        self.character = character(at: problemPosition)
        bracket = open.last.flatMap { position in
            character(at: position).flatMap { ["[", "{"].contains($0) ? ($0, position) : nil }
        }
    }

    /// Where the mistake is.
    var position: SourcePosition {
        ["while scanning an alias", "while scanning an anchor"].contains(context) ? contextPosition : problemPosition
    }

    var message: String {
        if let message = indentation ?? quotation ?? closing { return message }
        guard !context.isEmpty else { return problem }
        let begin = contextPosition == problemPosition ? "" : " that begins at \(contextPosition.words)"
        return "\(problem) \(context)\(begin)"
    }

    private var indentation: String? {
        switch problem {
        case _ where character == "\t" && (problem.contains("tab") || problem == Self.noToken):
            "a tab cannot indent; use spaces"
        case "did not find expected key":
            "a key of the mapping that begins at \(contextPosition.words) is expected here; check the indentation"
        case "did not find expected '-' indicator":
            "an element of the list that begins at \(contextPosition.words) is expected here; check the indentation"
        case "mapping values are not allowed in this context":
            "a colon cannot stand here; check the indentation, and put text that has a colon in quotation marks"
        default: nil
        }
    }

    private var quotation: String? {
        switch (problem, context) {
        case (_, "while scanning an alias"): "text that begins with * needs quotation marks, such as \"*\""
        case (_, "while scanning an anchor"): "text that begins with & needs quotation marks"
        case (Self.noToken, _): character.map { "text that begins with \($0) needs quotation marks" }
        case ("found unexpected end of stream", "while scanning a quoted scalar"):
            "the quotation mark at \(contextPosition.words) is not closed"
        default: nil
        }
    }

    private var closing: String? {
        switch problem {
        case "did not find expected ',' or '}'":
            "the { at \(contextPosition.words) is not closed: a comma or } is missing before this"
        case "did not find expected ',' or ']'":
            "the [ at \(contextPosition.words) is not closed: a comma or ] is missing before this"
        case "did not find expected node content" where character == nil:
            bracket.map { "the \($0.sign) at \($0.position.words) is not closed" }
        default: nil
        }
    }

    private static let noToken = "found character that cannot start any token"
}

extension SourcePosition {
    init(_ mark: yaml_mark_t) {
        self.init(line: mark.line + 1, column: mark.column + 1)
    }

    /// For the middle of a sentence.
    var words: String { "line \(line), column \(column)" }
}
