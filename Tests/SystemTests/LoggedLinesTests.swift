import CRUDTestSupport
import Testing

/// Whoever looks up a line of the log that asks for action finds it in the operations page.
@Suite struct LoggedLinesTests {
    private static let calls = [
        "logger.warning(", "logger.error(", "logger.critical(", "host.log(.warning,", "host.log(.error,",
    ]

    @Test func everyWarningAndErrorIsDocumented() throws {
        let root = BuildProducts.packageDirectory
        let page = String(decoding: try Files.read("\(root)/etc/OPERATIONS.md"), as: UTF8.self)
        let found = try Command.run("find", ["\(root)/Sources", "\(root)/Plugins", "-name", "*.swift"])
        var count = 0
        for path in found.output.split(separator: "\n").map(String.init) {
            let source = String(decoding: try Files.read(path), as: UTF8.self)
            for call in Self.calls {
                for text in source.split(separator: call, omittingEmptySubsequences: false).dropFirst() {
                    guard let part = Self.longestPart(of: text) else { continue }
                    count += 1
                    let isDocumented = page.contains(part)
                    #expect(isDocumented, "\(path.dropFirst(root.count + 1)): \(part)")
                }
            }
        }
        #expect(count >= 15, "they are found")
    }

    /// The beginning of the longest literal part of the message that is logged; nil where all of it is interpolated.
    private static func longestPart(of call: Substring) -> String? {
        let argument = call.drop { $0.isWhitespace }
        guard argument.first == "\"" else {
            // An error that is made on the spot, or a message from elsewhere.
            guard let quote = argument.prefix(while: { $0 != "\n" }).firstIndex(of: "\"") else { return nil }
            return longestPart(of: argument[quote...])
        }
        var parts = [""]
        var depth = 0
        let isLong = argument.hasPrefix(#"""""#)
        var rest = argument.dropFirst(isLong ? 3 : 1)
        while let character = rest.popFirst() {
            if depth > 0 {
                if character == "(" { depth += 1 } else if character == ")" { depth -= 1 }
            } else if character == "\\", rest.first == "(" {
                rest.removeFirst()
                depth = 1
                parts.append("")
            } else if character == "\"" {
                guard isLong, !rest.hasPrefix("\"\"") else { break }
            } else if character != "\\" {
                parts[parts.count - 1].append(character)
            }
        }
        let trimmed = parts.map { part in
            part.split(whereSeparator: \.isWhitespace).joined(separator: " ").drop { $0.isPunctuation || $0 == " " }
        }
        guard let longest = trimmed.max(by: { $0.count < $1.count }), longest.count >= 8 else { return nil }
        return String(longest.prefix(24))
    }
}
