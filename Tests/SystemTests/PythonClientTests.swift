import CRUDTestSupport
import Glibc
import Testing

/// The client in Python, whose tests are in Tests/PythonClient.
@Suite struct PythonClientTests {
    private static let client = "\(BuildProducts.packageDirectory)/Sources/clients/python"
    private static let tests = "\(BuildProducts.packageDirectory)/Tests/PythonClient"

    private static let configuration = Configuration(collections: "\"*\": {backend: main, changes: true}")

    private static func environment(_ daemon: Daemon?) -> [String: String] {
        ["PYTHONPATH": "\(client):\(tests)", "PYTHONWARNINGS": "default", "CRUDD_SOCKET": daemon?.socketPath ?? ""]
    }

    private static func run(_ arguments: [String], _ daemon: Daemon? = nil) throws -> Command.Outcome {
        let outcome = try Command.run(
            "/usr/bin/python3", ["-B"] + arguments, environment: environment(daemon),
            until: Deadline(.seconds(240)))
        #expect(outcome.status == .exited(0), "\(outcome.output)\n\(outcome.errors)")
        #expect(!outcome.errors.contains("Warning"), "\(outcome.errors)")
        return outcome
    }

    /// How many tests were run, by the last lines of unittest.
    private static func count(_ outcome: Command.Outcome) -> Int {
        let line = outcome.errorLines.last { $0.hasPrefix("Ran ") }
        return line?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    }

    @Test func withAScriptedPeer() throws {
        #expect(try Self.count(Self.run(["-m", "unittest", "scripted"])) >= 18)
    }

    @Test(arguments: [1, 3])
    func withTheDaemon(loops: Int) throws {
        var configuration = Self.configuration
        configuration.loops = loops
        let daemon = try Daemon(configuration)
        #expect(try Self.count(Self.run(["-m", "unittest", "real"], daemon)) >= 9)
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func itsExamplesPrintWhatItsPageShows() throws {
        let daemon = try Daemon(Self.configuration)
        let outcome = try Self.run(["\(Self.tests)/examples.py", "\(Self.client)/README.md"], daemon)
        #expect(outcome.output == "4\n")
    }

    /// Everything that was acknowledged is there, and nothing that was not sent; the feed ends with the truth.
    @Test func outcomesAreExactWhateverBecomesOfTheDaemon() throws {
        var daemon = try Daemon(Self.configuration)
        let directory = try TemporaryDirectory()
        let process = try ChildProcess(
            "/usr/bin/python3", ["-B", "\(Self.tests)/load.py", directory.path],
            environment: Self.environment(daemon), descriptors: [])
        let deadline = Deadline(.seconds(300))
        while !Files.exists("\(directory.path)/ready") {
            try #require(try process.isRunning && !deadline.hasPassed)
            poll(nil, 0, 10)
        }
        for _ in 0..<5 {
            let administrator = try daemon.connect()
            let value = try administrator.item("counters", "n")
            while try administrator.item("counters", "n") == value { try #require(!deadline.hasPassed) }
            try daemon.kill()
            daemon = try daemon.restarted()
        }
        try Files.write("", to: "\(directory.path)/stop")
        #expect(try process.waitForExit() == .exited(0))
        let counts = try JSON(parsing: Files.read("\(directory.path)/result"))
        func count(_ name: String) -> Int { counts[name]?.integer ?? -1 }
        #expect(count("acknowledged") > 0, "\(counts.text)")
        #expect(count("acknowledged") <= count("value"), "\(counts.text)")
        #expect(count("value") <= count("acknowledged") + count("unknown"), "\(counts.text)")
        #expect(count("followed") == count("value"), "\(counts.text)")
        #expect(try daemon.stop() == .exited(0))
    }
}
