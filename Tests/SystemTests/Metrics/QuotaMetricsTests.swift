import CRUDTestSupport
import Testing

/// The metrics of users with quotas.
@Suite(.enabled(if: Peer.canImpersonate, "needs root to connect as another user")) struct QuotaMetricsTests {
    @Test func tellWhatAUserMayStoreAndStores() throws {
        let daemon = try Daemon(
            Configuration(
                socket: #"mode: "0666""#,
                access: """
                    - {users: [65534], allow: [read, write], limits: {collections: 5, records: 70, bytes: 1MiB}}
                    - {users: [65533], allow: [read, write]}
                    """))
        let owner = try daemon.connect(as: Peer(user: 65534, group: 65534))
        let other = try daemon.connect(as: Peer(user: 65533, group: 65533))
        let admin = try daemon.connect()
        for name in ["first", "second"] {
            for id in ["a", "b", "c"] { #expect(try owner.create(name, id, "1234").result != nil) }
        }
        #expect(try other.create("third", "a", "1234").result != nil)
        // What others store in them counts too, and what they have themselves does not.
        #expect(try other.create("first", "d", "1234").result != nil)
        try admin.awaitMetric(#"crudd_user_records{uid="65534"}"#, 7)
        let samples = try admin.metrics()
        #expect(samples[#"crudd_user_collections{uid="65534"}"#] == 2)
        #expect(samples[#"crudd_user_records{uid="65534"}"#] == 7)
        #expect(samples[#"crudd_user_bytes{uid="65534"}"#] == 35)
        #expect(samples[#"crudd_user_quota{quota="collections",uid="65534"}"#] == 5)
        #expect(samples[#"crudd_user_quota{quota="records",uid="65534"}"#] == 70)
        #expect(samples[#"crudd_user_quota{quota="bytes",uid="65534"}"#] == 1_048_576)
        #expect(samples.sum("crudd_user_collections{") == 2 && samples.sum("crudd_user_records{") == 7)
    }
}
