import CRUDTestSupport
import Glibc
import Testing

/// A daemon with databases, files, memory and a child, clients that check every reply, and an administrator who does
/// at random whatever can be done to it.
///
/// `CRUDD_ADMINISTRATOR_SECONDS` says how long (50), `CRUDD_ADMINISTRATOR_ACTIONS` how often at most (500, or as often
/// as there is time for if the seconds are given), `CRUDD_ADMINISTRATOR_SEED` as what, and
/// `CRUDD_ADMINISTRATOR_WITHOUT` names actions that are left out. With `CRUDD_ADMINISTRATOR_TRACE` all actions
/// are printed. `CRUDD_PRODUCTS` names the folder of other programs to be tested. What fails prints the seed, the
/// actions that concern the collection, and where the files are.
@Suite struct RandomAdministratorTests {
    @Test func nothingIsLost() throws {
        let seed = Self.number("SEED").map { UInt64($0) } ?? .random(in: 0..<1_000_000)
        let seconds = Self.number("SECONDS")
        let limit = Self.number("ACTIONS") ?? (seconds == nil ? 500 : .max)
        let deadline = Deadline(.seconds(seconds ?? 50))
        let administrator = try Administrator(seed: seed, without: Self.excluded)
        var count = 0
        do {
            while count < limit, !deadline.hasPassed {
                count += 1
                try administrator.execute(administrator.chooseAction())
            }
            try administrator.finish()
        } catch {
            Issue.record("seed \(seed), action \(count): \(try Self.report(error, administrator))")
        }
        if Self.variable("TRACE") != nil { print(administrator.trace.text(of: nil, last: .max)) }
        print(
            "random administrator: seed \(seed), \(count) actions, \(administrator.load.replies) replies, "
                + "\(administrator.forecastCount) reloads as foretold, failures \(administrator.load.failures)")
    }

    private static func variable(_ name: String) -> String? {
        getenv("CRUDD_ADMINISTRATOR_\(name)").map { String(cString: $0) }
    }

    private static func number(_ name: String) -> Int? { variable(name).flatMap { Int($0) } }

    private static var excluded: Set<String> {
        Set((variable("WITHOUT") ?? "").split(separator: ",").map(String.init))
    }

    /// What is needed to understand a failure; the files are copied to where they stay.
    private static func report(_ error: any Error, _ administrator: Administrator) throws -> String {
        let kept = "\(administrator.installation.path)-kept"
        _ = try Command.run("cp", ["-a", administrator.installation.path, kept])
        let collection = administrator.names.first { "\(error)".hasPrefix("\($0)/") || "\(error)".hasPrefix("\($0):") }
        return "\(error)\n\(administrator.trace.text(of: collection))\nThe files are in \(kept)."
    }
}
