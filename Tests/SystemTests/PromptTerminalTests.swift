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
        try terminal.press("rea\tmy")
        try terminal.complete("the name") { $0.last == "crudctl> read 'my clients'" }
        try terminal.enter("ada -o json")
        let read = try terminal.wait(for: "the record") {
            $0.contains { $0.contains(#""item":{"age": 37}"#) } && $0.last == "crudctl>"
        }
        #expect(read.first == "crudctl> read 'my clients' ada -o json")
        // An error and a mistake end nothing.
        try terminal.enter("read nothing x")
        try terminal.wait(for: "the error") {
            $0.contains { $0.contains("record_not_found") } && $0.last == "crudctl>"
        }
        try terminal.enter("nonsense")
        try terminal.wait(for: "the mistake") {
            $0.contains { $0.contains("unknown command") } && $0.last == "crudctl>"
        }
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

    /// The variables and the option, as git and psql have them.
    @Test func thePagerIsChosen() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        for id in 0..<50 { #expect(try connection.create("long", "\(id)", "1").result != nil) }
        let (terminal, crudctl) = try Self.terminal(daemon)
        try terminal.prepare("export CRUDCTL_PAGER='cat > /dev/null; echo \"own\"' PAGER='echo \"others\"'")
        try terminal.enter("\(crudctl) query long; echo 'do''ne'")
        let own = try terminal.wait(for: "its own pager") { $0.contains("own") && $0.contains("done") }
        #expect(!own.contains("others"))
        // Options may stand before the command too.
        for line in ["\(crudctl) query long --no-pager", "\(crudctl) --no-pager query long"] {
            try terminal.enter("clear; \(line); echo 'do''ne'")
            let printed = try terminal.wait(for: "no pager") { lines in
                lines.contains("done") && lines.contains { $0.hasPrefix("9 ") }
            }
            #expect(!printed.contains("own"))
        }
        // A long text of another command.
        try terminal.enter("clear; \(crudctl) metrics; echo 'do''ne'")
        try terminal.wait(for: "the metrics' pager") { $0.contains("own") && $0.contains("done") }
        try terminal.enter("clear; CRUDCTL_PAGER=/nowhere/pager \(crudctl) query long")
        try terminal.wait(for: "the missing pager") {
            $0.joined(separator: " ").contains(#"has not found the pager "/nowhere/pager""#)
        }
        // Without a variable less shows one screen at a time; what fits is on the screen as if there was none.
        try terminal.enter("unset CRUDCTL_PAGER PAGER; clear; \(crudctl) query long; echo 'do''ne'")
        try terminal.wait(for: "less") { $0.last == ":" && $0.first?.hasPrefix("ID") == true }
        try terminal.press("q")
        try terminal.wait(for: "the end of less") { $0.contains("done") }
        try terminal.enter("clear; \(crudctl) query long --limit 3 --no-color; echo 'do''ne'")
        try terminal.wait(for: "the short result") { $0.contains("done") && $0.contains { $0.hasPrefix("10") } }
    }

    /// A query of all pages ends when the user has seen enough.
    @Test func anEndedPagerEndsTheQuery() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        for id in 0..<5000 { #expect(try connection.create("long", "\(id)", "1").result != nil) }
        let (terminal, crudctl) = try Self.terminal(daemon)
        try terminal.prepare("export PAGER='head -n 1'")
        try terminal.enter("\(crudctl) query long --all --limit 1; echo \"status $?\"")
        let screen = try terminal.wait(for: "the status") { $0.contains("status 0") }
        #expect(!screen.contains { $0.contains("there are more records") })
        let pages = try connection.metrics().sum(#"crudd_requests_total{method="record.query","#)
        #expect(pages < 5000)
    }

    /// Results that do not fit go to the pager, those that do are printed.
    @Test func longResultsGoToAPager() throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        for id in 0..<3 { #expect(try connection.create("short", "\(id)", "1").result != nil) }
        for id in 0..<50 { #expect(try connection.create("long", "\(id)", "1").result != nil) }
        let (terminal, crudctl) = try Self.terminal(daemon)
        let paged = "\(daemon.installation.path)/paged"
        try terminal.prepare("export PAGER='cat > \(paged); echo \"paged\"'")
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
