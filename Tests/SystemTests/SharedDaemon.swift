import CRUDTestSupport
import Testing

extension Daemon {
    /// By the configured number of event loops.
    @TaskLocal private static var ofSuite: [Int?: Daemon] = [:]

    /// The daemon of the suite that this test belongs to; see ``DaemonTrait``.
    static var shared: Daemon {
        get throws { try shared(loops: nil) }
    }

    /// The suite's daemon with that many event loops; the suite has to name them.
    static func shared(loops: Int?) throws -> Daemon {
        guard let daemon = ofSuite[loops] else { throw Failure("this suite has no such daemon") }
        return daemon
    }

    fileprivate static func withShared(
        _ daemons: [Int?: Daemon], _ body: @Sendable () async throws -> Void
    ) async throws {
        try await $ofSuite.withValue(daemons) { try await body() }
    }
}

/// One daemon for all tests of a suite, or one for each number of event loops. The tests run side by side, so each uses
/// collections of its own. The daemon must live through all of it and end well.
struct DaemonTrait: SuiteTrait, TestScoping {
    var configuration = Configuration()
    var loops: [Int?] = [nil]

    func provideScope(
        for test: Test, testCase: Test.Case?, performing body: @Sendable () async throws -> Void
    ) async throws {
        var daemons: [Int?: Daemon] = [:]
        for loops in loops {
            var configuration = configuration
            configuration.loops = loops
            daemons[loops] = try Daemon(configuration)
        }
        try await Daemon.withShared(daemons, body)
        for daemon in daemons.values { #expect(try daemon.stop() == .exited(0), "\(daemon.log)") }
    }
}

extension Trait where Self == DaemonTrait {
    static var daemon: DaemonTrait { DaemonTrait() }

    static func daemon(_ configuration: Configuration = Configuration(), loops: [Int?] = [nil]) -> DaemonTrait {
        DaemonTrait(configuration: configuration, loops: loops)
    }
}
