import ArgumentParser
import CRUDJSON
import CRUDWire

/// Operations on single members of an item.
struct FieldOperationArguments: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Add a number to the member at a path such as visits or address.number.", valueName: "path=number"))
    var increment: [String] = []
    @Option(help: ArgumentHelp("Lower the member to a number.", valueName: "path=number")) var minimum: [String] = []
    @Option(help: ArgumentHelp("Raise the member to a number.", valueName: "path=number")) var maximum: [String] = []
    @Option(help: ArgumentHelp("Append a value to an array.", valueName: "path=json")) var append: [String] = []
    @Option(help: ArgumentHelp("Append a value to an array unless it is there.", valueName: "path=json"))
    var add: [String] = []
    @Option(help: ArgumentHelp("Remove every equal value from an array.", valueName: "path=json"))
    var remove: [String] = []

    /// Each option with its member of `params`.
    private var operations: [(name: String, words: [String], takesNumber: Bool)] {
        [
            ("increment", increment, true), ("minimum", minimum, true), ("maximum", maximum, true),
            ("append", append, false), ("add", add, false), ("remove", remove, false),
        ]
    }

    var isEmpty: Bool { operations.allSatisfy(\.words.isEmpty) }

    func validate() throws {
        for (name, words, _) in operations {
            for word in words where !word.contains("=") {
                throw ValidationError("--\(name) \(word): the value is missing, as in --\(name) path=1.")
            }
        }
    }

    /// Writes the members of `params`.
    ///
    /// - Throws: for a value that is not JSON, or not a number where it must be.
    func members() throws -> (inout JSONWriter) -> Void {
        var members: [(name: String, object: [UInt8])] = []
        for (name, words, takesNumber) in operations where !words.isEmpty {
            var fields: [(path: String, values: [[UInt8]])] = []
            for word in words {
                let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                let (path, value) = (String(parts[0]), String(parts[1]))
                let text = try TextSource.argument(value).json("the value of --\(name) \(path)")
                if !takesNumber, let index = fields.firstIndex(where: { $0.path.utf8.elementsEqual(path.utf8) }) {
                    fields[index].values.append(text)
                } else {
                    fields.append((path, [text]))
                }
            }
            members.append((name, Self.object(fields, takesNumber)))
        }
        return { params in
            for (name, object) in members {
                params.key(name)
                params.raw(object)
            }
        }
    }

    private static func object(_ fields: [(path: String, values: [[UInt8]])], _ takesNumber: Bool) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { object in
            for (path, values) in fields {
                object.key(path)
                if takesNumber {
                    object.raw(values.joined())
                } else {
                    object.array { list in for value in values { list.raw(value) } }
                }
            }
        }
        return writer.bytes
    }
}
