import CRUDTestSupport
import Testing

/// The completion of crudctl in a shell: somebody presses Tab on a real terminal.
@Suite struct CompletionTests {
    /// A shell, and what has it complete the arguments of crudctl.
    struct Shell: CustomTestStringConvertible {
        let name: String
        /// Starts the shell without anybody's configuration.
        let start: String
        let setup: String

        var testDescription: String { name }

        static let all = [
            Shell(name: "bash", start: "bash --norc --noprofile", setup: "source <(crudctl %bash)"),
            Shell(
                name: "zsh", start: "zsh -f",
                setup: "autoload -U compinit; compinit -D -u; source <(crudctl %zsh); compdef _crudctl crudctl"),
            Shell(name: "fish", start: "fish --no-config", setup: "crudctl %fish | source"),
        ].filter { (try? Command.run("sh", ["-c", "command -v \($0.name)"]).status) == .exited(0) }
    }

    @Test(arguments: Shell.all)
    func completesNamesOfCollectionsAndBackends(_ shell: Shell) throws {
        let daemon = try Daemon()
        for name in ["completed", "other"] { _ = try daemon.connect().create(name, "a", "\"\(name)\"") }
        let crudctl = try BuildProducts.path(of: "crudctl")
        let folder = crudctl.prefix(upTo: crudctl.lastIndex(of: "/") ?? crudctl.endIndex)
        let terminal = try Tmux(width: 120, height: 24, environment: ["CRUDD_SOCKET": daemon.socketPath])
        try terminal.enter("PATH=\(folder):$PATH exec \(shell.start)")
        try terminal.enter(shell.setup.replacing("%", with: "--generate-completion-script "))
        try terminal.enter("clear; echo 'set'  'up'")
        try terminal.wait(for: "the shell") { $0.contains("set up") }
        try terminal.press("crudctl read --raw compl")
        try terminal.complete("the name") { $0.contains { $0.contains("crudctl read --raw completed") } }
        // The shell has completed the word: what follows is the next one.
        try terminal.enter("a")
        try terminal.wait(for: "the record") { $0.contains(#""completed""#) }
        try terminal.press("crudctl backup ma")
        try terminal.complete("the backend") { $0.contains { $0.contains("crudctl backup main") } }
    }
}
