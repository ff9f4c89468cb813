import CRUDTestSupport
import Testing

/// `crudctl top` on a real terminal.
@Suite struct TopTests {
    private static func command(_ daemon: Daemon) throws -> String {
        "\(try BuildProducts.path(of: "crudctl")) top --socket \(daemon.socketPath)"
    }

    private static let variables = ChildProcess.baseEnvironment

    @Test(arguments: [(80, 24), (40, 10), (200, 60)])
    func showsTheDaemonAndLeavesTheTerminalAsItWas(width: Int, height: Int) throws {
        let daemon = try Daemon()
        let connection = try daemon.connect()
        let terminal = try Tmux(width: width, height: height, environment: Self.variables)
        try terminal.enter("echo before; stty -g > \(daemon.installation.path)/before")
        // What is typed before the prompt is there is shown before it.
        try terminal.wait(for: "the shell") { $0.contains("before") && $0.last == "$" }
        try terminal.enter(Self.command(daemon))
        let screen = try terminal.wait(for: "methods and their rates") { lines in
            // Something to show, until it is seen.
            for _ in 0..<50 { _ = try? connection.upsert("clients", "a", "1") }
            return lines.contains { $0.hasPrefix("METHOD") } && lines.contains { $0.hasPrefix("record.upsert") }
        }
        #expect(screen[0].hasPrefix("crudd "))
        #expect(screen.count <= height && !screen.contains("before"))
        if height >= 24 {
            #expect(screen.contains { $0.contains("COLLECTION") } && screen.contains { $0.contains("clients") })
            #expect(screen.contains { $0.contains("BACKEND") } && screen.contains { $0.contains("ready") })
        }
        try terminal.press("q")
        try terminal.wait(for: "the former screen") { $0.contains("before") && $0.last == "$" }
        try terminal.enter("stty -g | cmp - \(daemon.installation.path)/before && echo 'as'  'before'")
        try terminal.wait(for: "the former mode") { $0.contains("as before") }
    }

    @Test func followsTheSizeOfItsWindow() throws {
        let daemon = try Daemon()
        let terminal = try Tmux(width: 80, height: 24, environment: Self.variables)
        try terminal.enter(Self.command(daemon))
        try terminal.wait(for: "a screen") { $0.first?.hasPrefix("crudd ") == true && $0[0].contains("session") }
        try terminal.resize(width: 30, height: 6)
        try terminal.wait(for: "a small screen") { $0.first?.hasPrefix("crudd ") == true && $0[0].hasSuffix("…") }
        try terminal.resize(width: 150, height: 40)
        try terminal.wait(for: "a large screen") {
            $0.first?.contains("q quits") == true && $0.contains { $0.contains("BACKEND") }
        }
        try terminal.press("C-c")
        try terminal.wait(for: "the shell") { $0.last?.hasSuffix("$ ") ?? false || $0.last == "$" }
    }

    @Test func saysThatTheDaemonIsGoneAndFindsTheNext() throws {
        let daemon = try Daemon()
        let terminal = try Tmux(width: 80, height: 24, environment: Self.variables)
        try terminal.enter(Self.command(daemon))
        try terminal.wait(for: "a screen") { $0.contains { $0.hasPrefix("BACKEND") } }
        try daemon.kill()
        try terminal.wait(for: "what is wrong") { $0.contains { $0.hasPrefix("unavailable: ") } }
        let next = try daemon.restarted()
        try terminal.wait(for: "the next one") {
            $0.first?.hasPrefix("crudd ") == true && !$0.contains { $0.hasPrefix("unavailable: ") }
        }
        try next.kill()
        try terminal.press("q")
        try terminal.wait(for: "the shell") { $0.last == "$" }
    }

    @Test func needsATerminal() throws {
        let outcome = try Command.run(BuildProducts.path(of: "crudctl"), ["top", "--socket", "/none"])
        #expect(outcome.status == .exited(64))
        #expect(outcome.errors.contains("terminal") && outcome.output.isEmpty)
    }
}
