import CRUDTestSupport
import Testing

@testable import crudctl

/// Where a user finds a command.
@Suite struct DescribedCommandTests {
    /// The options of a command, without those that all have.
    private static func options(of command: String) throws -> [String] {
        try #require(CommandUsage(of: command)).options.filter { !["--help", "--version"].contains($0) }
    }

    @Test func areInTheHelp() throws {
        let help = try Command.run(CrudctlProgram.path, ["--help"]).output
        for command in Crudctl.commandNames {
            #expect(help.split(separator: "\n").contains { $0.hasPrefix("  \(command) ") }, "\(command)")
        }
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func areCompleted(by shell: String) throws {
        let script = try Command.run(CrudctlProgram.path, ["--generate-completion-script", shell]).output
        for command in Crudctl.commandNames {
            #expect(script.contains(command), "\(command)")
            for option in try Self.options(of: command) {
                // In fish they are written without dashes.
                let word = shell == "fish" ? "-l '\(option.dropFirst(2))'" : option
                #expect(script.contains(word), "\(command) \(option)")
            }
        }
    }

    @Test func areInTheManual() throws {
        let directory = try TemporaryDirectory()
        let products = try BuildProducts.path(of: "crudd").dropLast("/crudd".count)
        let generated = try Command.run(
            "python3", ["\(BuildProducts.packageDirectory)/etc/man/generate", String(products), directory.path])
        #expect(generated.status == .exited(0), "\(generated.errors)")
        let page = String(decoding: try Files.read("\(directory.path)/crudctl.1"), as: UTF8.self)
        let manual = page.replacing("\\-", with: "-")
        for command in Crudctl.commandNames {
            #expect(manual.contains("\\fB\(command)\\fR"), "\(command)")
            for option in try Self.options(of: command) {
                #expect(manual.contains("\\fB\(option)\\fR"), "\(command) \(option)")
            }
        }
    }
}
