import CRUDTestSupport
import Testing

extension Daemon {
    @TaskLocal private static var ofSuite: Daemon?

    /// The daemon of the suite that this test belongs to; see ``DaemonTrait``.
    static var shared: Daemon {
        get throws {
            guard let ofSuite else { throw Failure("this suite has no daemon") }
            return ofSuite
        }
    }

    fileprivate static func withShared(
        _ daemon: Daemon, _ body: @Sendable () async throws -> Void
    ) async throws {
        try await $ofSuite.withValue(daemon) { try await body() }
    }
}

/// One daemon for all tests of a suite. They run side by side, so each uses collections of its own. The daemon must
/// live through all of it and end well.
struct DaemonTrait: SuiteTrait, TestScoping {
    var configuration = Configuration()

    func provideScope(
        for test: Test, testCase: Test.Case?, performing body: @Sendable () async throws -> Void
    ) async throws {
        let daemon = try Daemon(configuration)
        try await Daemon.withShared(daemon, body)
        #expect(try daemon.stop() == .exited(0), "\(daemon.log)")
    }
}

extension Trait where Self == DaemonTrait {
    static var daemon: DaemonTrait { DaemonTrait() }

    static func daemon(_ configuration: Configuration) -> DaemonTrait { DaemonTrait(configuration: configuration) }
}
