import CRUDTestSupport
import Testing

/// `crudd-plugin-check` as a plugin's author runs it.
@Suite struct CheckCommandTests {
    private static func run(_ arguments: String...) throws -> Command.Outcome {
        try Command.run(BuildProducts.path(of: "crudd-plugin-check"), arguments)
    }

    @Test func reportsWhatFailedAndWhy() throws {
        let outcome = try CheckedPlugin(fault: "IGNORES_COUNT_RANGE").check(options: "path: $DIRECTORY/main.sqlite")
        #expect(outcome.status == .exited(70))
        let lines = outcome.output.split(separator: "\n").map(String.init)
        #expect(lines.contains("FAILED  json: counting"))
        #expect(lines.contains(#"            records by id from "a" (1 B): 14, expected 12"#))
        #expect(lines.contains("ok      json: reading by id"))
        let failed = lines.count { $0.hasPrefix("FAILED") }
        #expect(failed > 1 && lines.last?.hasSuffix(" \(failed) failed") == true, "\(lines.last ?? "")")
        #expect(outcome.errors == "")
    }

    @Test func reportsACrash() throws {
        let outcome = try CheckedPlugin(fault: "CRASHES").check(options: "path: $DIRECTORY/main.sqlite")
        #expect(outcome.status == .exited(70))
        #expect(outcome.output.contains("ok      function table\n"))
        #expect(
            outcome.output.hasSuffix("FAILED  refusal of what is not declared\n            the plugin crashed\n"))
    }

    @Test func reportsThatStorageIsNotAvailable() throws {
        let plugin = try CheckedPlugin(product: "filesystem")
        try Files.makeDirectory("\(plugin.directory.path)/files")
        try Files.makeDirectory("\(plugin.directory.path)/files/.lock")
        let outcome = try plugin.check(options: "directory: $DIRECTORY/files")
        #expect(outcome.status == .exited(69))
        #expect(outcome.errors.contains(".lock"))
    }

    @Test(arguments: [
        ("path: 1", #"option "path""#), ("{pth: /x}", "pth"), ("[path]", "--options:1:1"),
        ("{path: *a}", "--options:1:8"),
    ])
    func pointsToWrongOptions(options: String, words: String) throws {
        let outcome = try CheckedPlugin(product: "sqlite").check(options: options)
        #expect(outcome.status == .exited(78))
        #expect(outcome.errors.contains(words))
        #expect(!outcome.output.contains("json"))
    }

    @Test(arguments: [
        [], ["--option"], ["--options"], ["extra"], ["--options={}", "extra"],
    ])
    func printsItsUsage(words: [String]) throws {
        let outcome = try Command.run(
            BuildProducts.path(of: "crudd-plugin-check"), (words.isEmpty ? [] : ["plugin.so"]) + words)
        #expect(outcome.status == .exited(64))
        #expect(outcome.errors.contains("Usage: crudd-plugin-check PATH"))
    }

    @Test(arguments: ["/none.so", "/etc/passwd", "/"])
    func refusesOtherFiles(path: String) throws {
        let outcome = try Self.run(path)
        #expect(outcome.status == .exited(78))
        #expect(outcome.errors.contains(path))
    }
}
