import CRUDPluginABI
import CRUDPluginTesting
import PluginTestSupport
import Testing

/// What the plugin says of its options.
@Suite struct OptionsTests {
    private let plugin: ExportedPlugin

    init() throws {
        plugin = try ExportedPlugin("postgresql")
    }

    @Test(arguments: [
        #"{"connection": ""}"#, #"{"connection": "host=db1,db2 dbname=app target_session_attrs=read-write"}"#,
        #"{"connection": "postgresql://crudd@db1:5432,db2/app?connect_timeout=5", "schema": "Ünïcode \"x\""}"#,
        #"{"connection": "service=app passfile=/etc/crudd/pgpass", "readers": 64, "shared": true}"#,
        #"{"connection": "", "table_setup": "SELECT create_distributed_table('{table}', 'id')"}"#,
    ])
    func areTaken(options: String) {
        #expect(plugin.error(inOptions: options) == nil)
    }

    @Test(arguments: [
        ("{}", "/connection"), (#"{"connection": 1}"#, "/connection"), (#"{"connection": "hst=x"}"#, "/connection"),
        (#"{"connection": "host"}"#, "/connection"), (#"{"connection": "host=a\u0000b"}"#, "/connection"),
        (#"{"connection": "host=db password=tulip"}"#, "/connection"),
        (#"{"connection": "postgresql://crudd:tulip@db/app"}"#, "/connection"),
        (#"{"connection": "postgresql://crudd:tu%lip@db/app"}"#, "/connection"),
        (#"{"connection": "password='tulip"}"#, "/connection"),
        (#"{"connection": "sslpassword=tulip"}"#, "/connection"),
        (#"{"connection": "", "schema": ""}"#, "/schema"), (#"{"connection": "", "schema": "pg_x"}"#, "/schema"),
        (#"{"connection": "", "schema": "\#(String(repeating: "x", count: 64))"}"#, "/schema"),
        (#"{"connection": "", "readers": 0}"#, "/readers"), (#"{"connection": "", "readers": 65}"#, "/readers"),
        (#"{"connection": "", "shared": 1}"#, "/shared"), (#"{"connection": "", "table_setup": 1}"#, "/table_setup"),
        (#"{"conection": ""}"#, "/conection"),
    ])
    func areRefused(options: String, pointer: String) throws {
        let error = try #require(plugin.error(inOptions: options))
        #expect(error.status == CRUDD_INVALID_OPTIONS)
        #expect(error.pointer == pointer)
        #expect(!error.message.contains("tulip"), "a password is not repeated")
    }
}
