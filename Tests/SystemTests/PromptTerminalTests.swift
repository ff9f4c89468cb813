import CRUDTestSupport
import Testing

/// `crudctl` alone on a real terminal, and its pager.
@Suite struct PromptTerminalTests {
    private static func terminal(_ daemon: Daemon, height: Int = 24) throws -> (Tmux, crudctl: String) {
        let terminal = try Tmux(
            width: 80, height: height,
            environment: ["CRUDD_SOCKET": daemon.socketPath, "XDG_STATE_HOME": "\(daemon.installation.path)/home"])
        return (terminal, try BuildProducts.path(of: "crudctl"))
    }

    @Test func executesCompletesAndRemembers() throws {
        let daemon = try Daemon()
        #expect(try daemon.connect().create("my clients", "ada", #"{"age":36}"#).result != nil)
        let (terminal, crudctl) = try Self.terminal(daemon)
        let settings = "\(daemon.installation.path)/before"
        try terminal.enter("stty -g > \(settings); clear; \(crudctl)")
        try terminal.wait(for: "the prompt") { $0.last == "crudctl>" }
        try terminal.enter("upsert 'my clients' ada '{\"age\": 37}'")
        try terminal.wait(for: "the outcome") { $0.contains { $0.hasPrefix("created") } && $0.last == "crudctl>" }
        // A command and a name that has a space.
        try terminal.press("C-l")
        try terminal.enter("rea\tmy\tada -o json")
        let read = try terminal.wait(for: "the record") { $0.contains { $0.contains(#""item":{"age": 37}"#) } }
        #expect(read.first == "crudctl> read 'my clients' ada -o json")
        // An error and a mistake end nothing.
        try terminal.enter("read nothing x")
        try terminal.wait(for: "the error") { $0.contains { $0.contains("record_not_found") } }
        try terminal.enter("nonsense")
        try terminal.wait(for: "the mistake") { $0.contains { $0.contains("unknown command") } }
        try terminal.press("C-l")
        try terminal.press("Up")
        try terminal.wait(for: "the last line") { $0 == ["crudctl> nonsense"] }
        try terminal.press("Up")
        try terminal.wait(for: "the line before") { $0 == ["crudctl> read nothing x"] }
        try terminal.press("C-c")
        try terminal.press("C-d")
        try terminal.wait(for: "the shell") { $0.last == "$" }
        try terminal.enter("stty -g | cmp - \(settings) && echo 'as'  'before'")
        try terminal.wait(for: "the former mode") { $0.contains("as before") }
        let history = String(
            decoding: try Files.read("\(daemon.installation.path)/home/crudctl/history"), as: UTF8.self)
        #expect(history.split(separator: "\n").last == "nonsense")
    }

    /// Results that do not fit go to the pager, those that do are printed.
    @Test func longResultsGoToAPager() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        for id in 0..<3 { #expect(try connection.create("short", "\(id)", "1").result != nil) }
        for id in 0..<50 { #expect(try connection.create("long", "\(id)", "1").result != nil) }
        let (terminal, crudctl) = try Self.terminal(daemon)
        let paged = "\(daemon.installation.path)/paged"
        try terminal.enter("export PAGER='cat > \(paged); echo \"paged\"'; clear")
        try terminal.enter("\(crudctl) query short; echo 'do''ne'")
        let short = try terminal.wait(for: "the short result") { $0.contains("done") }
        #expect(!short.contains("paged") && !Files.exists(paged))
        try terminal.enter("clear; \(crudctl) query long; echo 'do''ne'")
        let long = try terminal.wait(for: "the long result") { $0.contains("done") && $0.contains("paged") }
        #expect(!long.contains { $0.hasPrefix("49 ") })
        #expect(try Files.read(paged).split(separator: 0x0A).count == 51)
        try terminal.enter("clear; PAGER= \(crudctl) query long; echo 'do''ne'")
        try terminal.wait(for: "the long result") { $0.contains("done") && $0.contains { $0.hasPrefix("9 ") } }
        // Nothing but a terminal has one, and one that does not read is no error.
        try terminal.enter("clear; \(crudctl) query long | wc -l; PAGER=true \(crudctl) query long; echo \"status $?\"")
        try terminal.wait(for: "the status") { $0.contains("status 0") }
    }
}
