/// A terminal in which a shell runs, as a person would have it: tmux without anybody's configuration.
package final class Tmux {
    private let directory: TemporaryDirectory
    private var server: String { "\(directory.path)/tmux" }

    package init(width: Int, height: Int, environment: [String: String] = [:]) throws {
        directory = try TemporaryDirectory()
        let variables = ["PS1": "$ ", "TERM": "xterm-256color"].merging(environment) { $1 }
        let shell = "exec env -u ENV PS1='$ ' sh -i"
        try tmux(
            ["-u", "-f", "/dev/null", "new-session", "-d", "-x", "\(width)", "-y", "\(height)"]
                + variables.flatMap { ["-e", "\($0)=\($1)"] } + [shell])
        // What is typed before it can be lost.
        try wait(for: "the shell's prompt") { $0 == ["$"] }
    }

    deinit { _ = try? tmux(["kill-server"]) }

    /// Types a line.
    package func enter(_ line: String) throws { try tmux(["send-keys", line, "Enter"]) }

    /// Types lines for the shell alone, and waits until it has executed them and the screen is empty but for a prompt.
    ///
    /// What is typed before is echoed where the screen is cleared then, its line end too: what it prints would stand
    /// behind the prompt.
    package func prepare(_ line: String) throws {
        try enter("\(line); clear; echo 'pre''pared'")
        try wait(for: "the shell") { $0 == ["prepared", "$"] }
    }

    package func press(_ key: String) throws { try tmux(["send-keys", key]) }

    /// Presses Tab, and again as long as nothing comes: what completes gives up when the daemon's names take seconds.
    package func complete(_ what: String, _ isExpected: ([String]) -> Bool) throws {
        let deadline = Deadline()
        repeat {
            try press("Tab")
            if (try? wait(for: what, until: Deadline(.seconds(10)), isExpected)) != nil { return }
        } while !deadline.hasPassed
        try wait(for: what, until: deadline, isExpected)
    }

    package func resize(width: Int, height: Int) throws {
        try tmux(["resize-window", "-x", "\(width)", "-y", "\(height)"])
    }

    /// The lines on the screen, without the blank ones below.
    package var lines: [String] {
        get throws {
            var lines = try tmux(["capture-pane", "-p"]).split(separator: "\n", omittingEmptySubsequences: false)
            while lines.last?.isEmpty == true { lines.removeLast() }
            return lines.map(String.init)
        }
    }

    /// Waits until the screen is as expected, and returns it.
    @discardableResult
    package func wait(for what: String, until deadline: Deadline = Deadline(), _ isExpected: ([String]) -> Bool) throws
        -> [String]
    {
        while true {
            let lines = try lines
            if isExpected(lines) { return lines }
            guard !deadline.hasPassed else { throw Failure("\(what): \(lines.joined(separator: "\n"))") }
        }
    }

    @discardableResult
    private func tmux(_ arguments: [String]) throws -> String {
        let outcome = try Command.run("tmux", ["-S", server] + arguments)
        guard outcome.status == .exited(0) else { throw Failure("tmux \(arguments): \(outcome.errors)") }
        return outcome.output
    }
}
