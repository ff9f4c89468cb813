import CRUDTestSupport
import Glibc
import Testing

/// Whoever may write the configuration decides what the daemon executes.
@Suite struct ConfigurationTrustTests {
    @Test(arguments: [0o666, 0o664, 0o602, 0o620])
    func aFileThatOthersMayWriteIsRefused(mode: Int) throws {
        let installation = try Installation()
        let file = installation.configurationFile
        try Files.setMode(mode_t(mode), of: file)
        let start = try installation.startInVain()
        #expect(start.status == .exited(78))
        #expect(start.errors == "\(file):1:1: can be written by others: chmod go-w\n")
        #expect(try installation.check().status == .exited(0), "a draft may be anybody's")
        try Files.setMode(0o640, of: file)
        let daemon = try Daemon(on: installation)
        let connection = try daemon.connect()
        try installation.configure(Configuration(collections: "\"*\": {backend: main}\nother: {backend: main}"))
        try Files.setMode(mode_t(mode), of: file)
        let reload = try connection.call("daemon.reload", "{}")
        #expect(reload.error?.name == "invalid_configuration", "\(reload)")
        #expect(reload.error?.message.contains("can be written by others") == true)
        try Files.setMode(0o644, of: file)
        #expect(try connection.call("daemon.reload", "{}").result?["changes"]?.elements?.isEmpty == false)
    }

    @Test(.enabled(if: Peer.canImpersonate, "needs root to give a file away"))
    func aFileOfAnotherUserIsRefused() throws {
        let installation = try Installation()
        let file = installation.configurationFile
        #expect(chown(file, 65534, 0) == 0)
        let start = try installation.startInVain()
        #expect(start.status == .exited(78))
        let message = "belongs to user 65534, neither to root nor to the daemon's own user"
        #expect(start.errors == "\(file):1:1: \(message)\n")
        #expect(try installation.check().status == .exited(0))
    }

    /// A file to be checked may come from anybody, and a command can do anything.
    @Test(arguments: ["", "frobnicate: 1\n"])
    func aCheckExecutesNoCommandUnlessAsked(error: String) throws {
        let definition = #"odd: {command: [/bin/sh, -c, "touch $DIRECTORY/ran"], options: {path: /x}}"#
        let marked = MarkedText(
            Configuration(backends: "main: {plugin: memory}\n" + definition.replacing("[", with: "¶[")).text)
        let installation = try Installation(text: error + marked.text)
        let file = installation.configurationFile
        let crudctl = try BuildProducts.path(of: "crudctl")
        let crudd = try BuildProducts.path(of: "crudd")
        for (program, words) in [(crudd, ["--check"]), (crudctl, ["check-config"])] {
            let outcome = try Command.run(program, words + [file])
            #expect(!Files.exists("\(installation.path)/ran"))
            let isGood = error.isEmpty
            #expect(outcome.status == .exited(isGood ? 0 : 78), "\(outcome.errors)")
            let what = "its options were not checked, since that executes its command (--run-commands does)"
            let line = "\(file):\(marked.positions[0]): backend odd: \(what)\n"
            #expect(outcome.errors.hasPrefix(isGood ? line : "\(file):1:1: unknown key \"frobnicate\""))
            #expect(outcome.errorLines.count == 1, "\(outcome.errors)")
            #expect(outcome.output.isEmpty)
            // What it is has been checked.
            let executable = try Installation(
                Configuration(backends: "main: {plugin: memory}\nodd: {command: [/nowhere/odd]}"))
            let missing = try Command.run(program, words + [executable.configurationFile])
            #expect(missing.status == .exited(78) && missing.errors.contains("no executable"), "\(missing.errors)")
            _ = try Command.run(program, words + [file, "--run-commands"])
            #expect(Files.exists("\(installation.path)/ran"))
            Files.remove("\(installation.path)/ran")
        }
    }
}
