import CRUDModel
import CRUDWire
import Foundation
import Testing

/// The protocol's document, the method table and the error codes say the same.
@Suite struct ProtocolDocumentTests {
    /// The rows of the first table of a section, each as its cells.
    private func rows(ofSection title: String) throws -> [[String]] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
        let document = try String(
            contentsOf: root.appendingPathComponent("Sources/CRUDWire/PROTOCOL.md"), encoding: .utf8)
        let section = try #require(document.components(separatedBy: "\n## ").first { $0.hasPrefix(title) })
        let lines = section.components(separatedBy: "\n")
        return lines.drop { !$0.hasPrefix("|") }.prefix { $0.hasPrefix("|") }.map { line in
            line.dropFirst().dropLast().components(separatedBy: "|").map {
                $0.trimmingCharacters(in: CharacterSet(charactersIn: " `"))
            }
        }
    }

    private func list(_ cell: String) -> [String] {
        cell.components(separatedBy: ",").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    @Test func describesTheMethods() throws {
        let rows = try rows(ofSection: "6.").dropFirst(2)
        #expect(rows.map { $0[0] } == MethodTable.definitions.map(\.name.description))
        for (row, definition) in zip(rows, MethodTable.definitions) {
            #expect(row[1] == (definition.access == .everybody ? "any" : definition.access.rawValue))
            #expect(
                list(row[2])
                    == definition.required.map(\.name.description) + definition.optional.map { "\($0.name)?" })
            #expect(list(row[4]) == definition.errors)
        }
    }

    @Test func describesTheErrors() throws {
        let rows = try rows(ofSection: "7.").dropFirst(2)
        #expect(rows.map { Int($0[0]) } == CRUDError.Code.all.map(\.code.rawValue))
        #expect(rows.map { $0[1] } == CRUDError.Code.all.map(\.name))
        #expect(rows.map { $0[3] == "yes" } == CRUDError.Code.all.map(\.code.isRetryable))
    }

    @Test func everyMethodHasItsRow() {
        #expect(MethodTable.definitions.map(\.method) == Method.allCases)
        #expect(Set(Method.allCases.map(\.name.description)).count == Method.allCases.count)
        for definition in MethodTable.definitions {
            #expect(Set(definition.required).isDisjoint(with: definition.optional))
            #expect(definition.summary.hasSuffix("."))
            for name in definition.errors { #expect(CRUDError.Code.all.contains { $0.name == name }) }
        }
    }
}
