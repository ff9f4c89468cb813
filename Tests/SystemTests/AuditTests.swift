import CRUDTestSupport
import Testing

/// The lines of the log that tell who has done what.
@Suite struct AuditTests {
    /// The lines about acts, without the time and the level, once the daemon has ended.
    private static func acts(of daemon: Daemon) throws -> [Substring] {
        try daemon.stop()
        return daemon.log.split(separator: "\n").filter { $0.hasPrefix("<5>session ") && !$0.contains(" took ") }.map {
            $0.dropFirst(3)
        }
    }

    @Test func whatAdministratorsDoIsLogged() throws {
        let daemon = try Daemon()
        let admin = try daemon.connect()
        let other = try daemon.connect()
        for id in ["a1", "a2", "b"] { #expect(try other.create("c", id, "1").result != nil) }
        #expect(try admin.call("session.hello", #"{"client":"tests \u001b"}"#).result != nil)
        #expect(try admin.call("record.deleteMatching", #"{"collection":"c","prefix":"a"}"#).result != nil)
        #expect(try admin.call("record.deleteMatching", #"{"collection":"c","prefix":"x"}"#).result != nil)
        #expect(try admin.call("collection.reindex", #"{"collection":"c"}"#).result != nil)
        #expect(try admin.call("collection.drop", #"{"collection":"c","ifEmpty":true}"#).error != nil)
        #expect(try admin.call("collection.drop", #"{"collection":"c","moved":true}"#).result != nil)
        try admin.sendFrame(Connection.notification("collection.drop", #"{"collection":"c"}"#))
        #expect(try admin.call("daemon.reload", #"{"force":true,"move":true}"#).result != nil)
        #expect(try admin.call("session.close", #"{"session":2}"#).result != nil)
        #expect(try admin.call("daemon.logLevel", #"{"level":"info"}"#).result != nil)
        #expect(try admin.call("backend.backup", #"{"backend":"main","directory":"x"}"#).error != nil)
        #expect(try admin.call("session.close", #"{"session":77}"#).error != nil)
        for method in ["backend.list", "daemon.status", "session.list", "daemon.metrics"] {
            #expect(try admin.call(method).result != nil, "it changes nothing")
        }
        let who = "session 1 of uid \(Peer.own.user) (\(Peer.ownName)), client \"tests \\u{1B}\": "
        #expect(
            try Self.acts(of: daemon)
                == [
                    #"record.deleteMatching on collection "c": ok, 2 records deleted"#,
                    #"record.deleteMatching on collection "c": ok, 0 records deleted"#,
                    #"collection.reindex on collection "c": ok"#, #"collection.drop on collection "c": record_exists"#,
                    #"collection.drop of what moves have left on collection "c": ok"#,
                    #"collection.drop on collection "c": ok"#, "daemon.reload with force and move: ok",
                    "session.close of session 2: ok", "daemon.logLevel to info: ok",
                    #"backend.backup of backend main in "x": invalid_params"#,
                    "session.close of session 77: invalid_params",
                ].map { (who + $0)[...] })
    }

    @Test(.enabled(if: Peer.canImpersonate, "needs root to connect as another user"))
    func aFloodOfDeletionsHidesNoActOfAnAdministrator() throws {
        let daemon = try Daemon(Configuration(socket: #"mode: "0666""#, loops: 1))
        let peer = try daemon.connect(as: Peer(user: 65534, group: 65534))
        let deletion = ("record.deleteMatching", #"{"collection":"c","all":true}"#)
        let start = ContinuousClock.now
        #expect(try peer.pipeline(Array(repeating: deletion, count: 80)).allSatisfy { $0.result != nil })
        let admin = try daemon.connect()
        for _ in 0..<30 { #expect(try admin.call("collection.reindex", #"{"collection":"c"}"#).result != nil) }
        let lines = try Self.acts(of: daemon)
        #expect(lines.count { $0.contains(": collection.reindex ") } == 30)
        let deletions = lines.filter { $0.contains(": record.deleteMatching ") }
        let seconds = Int((ContinuousClock.now - start).components.seconds) + 1
        #expect((20...20 + seconds).contains(deletions.count), "20 at once and one each second")
        #expect(deletions.allSatisfy { $0.hasPrefix("session 1 of uid 65534 (nobody): ") })
    }

    /// Who turns the trail off leaves that, and what the same reload has widened.
    @Test func aHigherLogLevelHidesNotWhoHasSetIt() throws {
        let rule = "- {users: [70001], allow: [read]}"
        let daemon = try Daemon(Configuration(access: rule))
        let admin = try daemon.connect()
        #expect(try admin.call("collection.reindex", #"{"collection":"c"}"#).result != nil)
        #expect(try admin.call("daemon.logLevel", #"{"level":"critical"}"#).result != nil)
        #expect(try admin.call("record.deleteMatching", #"{"collection":"c","all":true}"#).result != nil)
        try daemon.installation.configure(text: Configuration(access: rule).text + "log: {level: error}\n")
        #expect(try admin.reload() == ["log.level: from critical to error"])
        try daemon.installation.configure(text: Configuration().text + "log: {level: critical}\n")
        #expect(try admin.reload().contains("access: everybody gains read and write on all collections"))
        let acts = try Self.acts(of: daemon).map { line in line.drop { $0 != ":" }.dropFirst(2) }
        #expect(
            acts == [
                #"collection.reindex on collection "c": ok"#, "daemon.logLevel to critical: ok", "daemon.reload: ok",
                "daemon.reload: ok",
            ])
        #expect(daemon.log.contains("\n<5>log.level: from info to critical, until the next reload\n"))
    }

    /// The warning of a reload that leaves no warnings.
    @Test func aHigherLogLevelHidesNotWhoGainsAccess() throws {
        let daemon = try Daemon(Configuration(access: "- {users: [70001], allow: [read]}"))
        let admin = try daemon.connect()
        try daemon.installation.configure(text: Configuration().text + "log: {level: critical}\n")
        #expect(try admin.reload().contains("log.level: from info to critical"))
        try daemon.stop()
        #expect(daemon.log.contains("\n<4>access: everybody gains read and write on all collections\n"))
        #expect(daemon.log.contains(": daemon.reload: ok\n"))
    }

    /// A reload by which somebody may do more.
    @Test func whoGainsAccessIsAWarning() throws {
        let daemon = try Daemon(Configuration(access: "- {users: [70001], allow: [read]}"))
        let admin = try daemon.connect()
        try daemon.installation.configure(Configuration())
        #expect(
            try admin.reload() == ["access: removed", "access: everybody gains read and write on all collections"])
        try daemon.stop()
        #expect(daemon.log.contains("\n<4>access: everybody gains read and write on all collections\n"))
    }
}
