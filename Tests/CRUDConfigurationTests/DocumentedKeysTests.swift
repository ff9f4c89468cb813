import CRUDTestSupport
import Testing

/// The tables of keys in etc/README.md, from which crudd.yaml(5) is made, have what the decoder accepts. It enumerates
/// the keys of a section in its message when the section is not a mapping.
@Suite struct DocumentedKeysTests {
    private let document: [Substring]

    init() throws {
        let text = try Files.read("\(BuildProducts.packageDirectory)/etc/README.md")
        document = String(decoding: text, as: UTF8.self).split(separator: "\n")
    }

    /// The rows of the first table of keys below a heading, without their first two characters: each begins with a key
    /// in backquotes.
    private func table(_ heading: String) throws -> [Substring] {
        let start = try #require(document.firstIndex { $0 == heading })
        let table = document[start...].drop { !$0.hasPrefix("| key |") }
        return table.dropFirst(2).prefix { $0.hasPrefix("| `") }.map { $0.dropFirst(2) }
    }

    /// The keys that the decoder accepts in the mapping of which `yaml` makes something else.
    private func accepted(_ yaml: String) throws -> [String] {
        let message = try #require(diagnostics(yaml).first { $0.contains("expected a mapping (") })
        let keys = try #require(message.split(separator: "(").last?.split(separator: ")").first)
        return keys.split(separator: ", ").map { String($0) }
    }

    @Test(arguments: [
        ("## The file", "hello"), ("## Backends", "backends: {main: 3}"),
        ("## Collections", "\(minimal)collections: {x: 3}"), ("## Access", "\(minimal)access: [3]"),
        ("## Limits", "\(minimal)limits: 3"),
    ])
    func areThoseThatTheDecoderAccepts(heading: String, yaml: String) throws {
        let documented = try table(heading).map { row in row.dropFirst().prefix { $0 != "`" } }
        #expect(documented.map(String.init).sorted() == (try accepted(yaml)).sorted())
    }

    /// Sections with few keys have them in their row of the first table, and the limits of a child in theirs.
    @Test(arguments: [
        ("## The file", "socket", "\(minimal)socket: 3"), ("## The file", "plugins", "\(minimal)plugins: 3"),
        ("## The file", "cache", "\(minimal)cache: 3"), ("## The file", "log", "\(minimal)log: 3"),
        ("## Backends", "limits", "backends: {main: {plugin: x, isolation: process, limits: 3}}"),
        ("## Access", "limits", "\(minimal)access: [{allow: [], limits: 3}]"),
    ])
    func areInTheRowOfTheirSection(heading: String, section: String, yaml: String) throws {
        let row = try #require(try table(heading).first { $0.hasPrefix("`\(section)`") })
        for key in try accepted(yaml) {
            #expect(row.contains("`\(key)`") || row.contains("\(key): "), "\(section) lacks \(key)")
        }
    }
}
