import CRUDTestSupport
import Glibc
import Testing

/// A start that fails says by its exit status whether another configuration would help.
@Suite struct StartFailureTests {
    @Test(arguments: ["/state\n", "/nowhere/state\n"])
    func aStateDirectoryThatCannotBeIsAnErrorOfTheConfiguration(place: String) throws {
        let installation = try Installation()
        Files.remove("\(installation.path)/state")
        try Files.write("", to: "\(installation.path)/state")
        try installation.configure(text: Configuration().text.replacing("/state\n", with: place))
        let outcome = try installation.startInVain()
        #expect(outcome.status == .exited(78))
        #expect(outcome.errors.hasPrefix("\(installation.configurationFile):1:18: state_directory: "))
    }

    /// Where the file does not say where, there is no line to blame.
    @Test func aDefaultThatCannotBeIsAnErrorOfTheFile() throws {
        let installation = try Installation()
        let state = "\(installation.path)/nowhere/state"
        try installation.configure(
            text: Configuration().text.split(separator: "\n").filter { !$0.hasPrefix("state_directory") }
                .joined(separator: "\n"))
        let outcome = try Command.run(
            "env",
            ["STATE_DIRECTORY=\(state)", BuildProducts.path(of: "crudd"), "--config", installation.configurationFile])
        #expect(outcome.status == .exited(78))
        let start = "\(installation.configurationFile):1:1: state_directory: "
        #expect(outcome.errors.hasPrefix(start), "\(outcome.errors)")
    }

    @Test(.enabled(if: Peer.canImpersonate, "needs root to be another user"))
    func aGroupThatCannotBeIsAnErrorOfTheConfiguration() throws {
        let installation = try Installation(text: Configuration(socket: "group: root").text)
        guard chown(installation.path, 65534, 65534) == 0 else { throw Failure.system("chown") }
        let outcome = try Command.run(
            "setpriv",
            [
                "--reuid=65534", "--regid=65534", "--clear-groups", BuildProducts.path(of: "crudd"), "--config",
                installation.configurationFile,
            ])
        #expect(outcome.status == .exited(78))
        #expect(
            outcome.errors.contains("crudd.yaml:4:10: socket.group: cannot give \(installation.socketPath)"),
            "\(outcome.errors)")
    }

    @Test func aSocketThatCannotBeIsAnErrorOfTheConfiguration() throws {
        let installation = try Installation()
        try installation.configure(text: Configuration().text.replacing("/crudd.sock", with: "/nowhere/crudd.sock"))
        let outcome = try installation.startInVain()
        #expect(outcome.status == .exited(78))
        #expect(outcome.errors.hasPrefix("\(installation.configurationFile):3:9: socket.path: "))
    }

    /// With a socket of its own it would not notice the other one otherwise, and both would move and drop records.
    @Test func aSecondDaemonDoesNotUseTheStateOfTheFirst() throws {
        let daemon = try Daemon()
        let second = "\(daemon.installation.path)/second.yaml"
        let text = Configuration().text.replacing("crudd.sock", with: "second.sock")
        try Files.write(text.replacing("$DIRECTORY", with: daemon.installation.path), to: second)
        let outcome = try Command.run(BuildProducts.path(of: "crudd"), ["--config", second])
        #expect(outcome.status == .exited(69))
        #expect(outcome.errors.hasSuffix("state_directory: another daemon uses \(daemon.installation.path)/state\n"))
    }

    /// What a daemon that was killed has started holds its locks until it executes its program.
    @Test(arguments: ["crudd.sock", "state/collections.jsonl"])
    func waitsForALockThatIsHeldForAMoment(name: String) throws {
        let daemon = try Daemon()
        try daemon.stop()
        // It waits for two seconds, in which a busy machine may give this process no time.
        let hasServed = try (0..<5).contains { _ in try serves(daemon.installation, onceFree: name) }
        #expect(hasServed)
    }

    /// Whether a daemon serves that has found a file locked, which is then released.
    private func serves(_ installation: Installation, onceFree name: String) throws -> Bool {
        let path = "\(installation.path)/\(name).lock"
        var lock: Descriptor? = Descriptor(owning: open(path, O_RDWR | O_CLOEXEC))
        #expect(flock(lock?.number ?? -1, LOCK_EX | LOCK_NB) == 0)
        let next = try ChildProcess(
            BuildProducts.path(of: "crudd"), ["--config", installation.configurationFile], descriptors: [])
        let deadline = Deadline()
        while (try? next.openFiles.contains(path)) != true {
            guard try next.isRunning && !deadline.hasPassed else { return false }
            usleep(1000)
        }
        lock = nil
        while (try? Connection(to: installation.socketPath)) == nil {
            guard try next.isRunning && !deadline.hasPassed else { return false }
            usleep(1000)
        }
        next.signal(SIGTERM)
        #expect(try next.waitForExit() == .exited(0))
        return true
    }

    @Test(.enabled(if: Peer.canImpersonate, "needs root to be another user"))
    func whoseDirectoryTheSocketLiesInIsSaid() throws {
        let installation = try Installation()
        let directory = "\(installation.path)/run"
        try Files.makeDirectory(directory)
        guard chown(directory, 65534, 65534) == 0 else { throw Failure.system("chown") }
        try installation.configure(text: Configuration().text.replacing("/crudd.sock", with: "/run/crudd.sock"))
        let outcome = try installation.startInVain()
        #expect(outcome.status == .exited(78))
        #expect(outcome.errors.contains("socket.path: \(directory) belongs to nobody"), "\(outcome.errors)")
    }

    /// Runs a program that may have so many descriptors.
    private func run(_ program: String, _ arguments: [String], descriptors: Int) throws -> Command.Outcome {
        try Command.run(
            "sh", ["-c", #"ulimit -n \#(descriptors); exec "$0" "$@""#, BuildProducts.path(of: program)] + arguments)
    }

    @Test func wantOfDescriptorsIsNone() throws {
        let installation = try Installation()
        // Enough to check and load the plugin.
        let outcome = try run("crudd", ["--config", installation.configurationFile], descriptors: 8)
        #expect(outcome.status == .exited(71), "\(outcome.errors)")
        #expect(outcome.errorLines.last?.contains("Too many open files") == true, "\(outcome.errors)")
    }

    @Test(arguments: ["--check", "--config"], ["inline", "process"])
    func norIsIfThePluginCannotBeChecked(option: String, isolation: String) throws {
        let options = "options: {path: $DIRECTORY/main.sqlite}"
        let text = Configuration(backends: "main: {plugin: sqlite, isolation: \(isolation), \(options)}").text
        let installation = try Installation(text: text)
        // Too few for the directories on the way to it.
        let outcome = try run("crudd", [option, installation.configurationFile], descriptors: 6)
        #expect(outcome.status == .exited(71), "\(outcome.errors)")
        #expect(outcome.errorLines.count == 1 && outcome.errors.contains("Too many open files"), "\(outcome.errors)")
        // An error that can be corrected is worth correcting first.
        try installation.configure(text: text + "colour: red\n")
        #expect(try run("crudd", [option, installation.configurationFile], descriptors: 6).status == .exited(78))
    }

    @Test func norIsIfThePluginUnderCheckCannotBeLoaded() throws {
        let plugin = try BuildProducts.path(of: "libmemory.so")
        for arguments in [[plugin], [plugin, "--in-child"]] {
            let outcome = try run("crudd-plugin-check", arguments, descriptors: 5)
            #expect(outcome.status == .exited(71), "\(outcome.errors)")
            #expect(outcome.errors.contains("Too many open files"), "\(outcome.errors)")
        }
    }
}
