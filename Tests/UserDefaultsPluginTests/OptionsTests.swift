import CRUDPluginABI
import CRUDPluginTesting
import PluginTestSupport
import Testing

/// What the plugin says of its options.
@Suite struct OptionsTests {
    private let plugin: ExportedPlugin

    init() throws {
        plugin = try ExportedPlugin("userdefaults")
    }

    @Test(arguments: ["com.example.app", "a", "7", "My_App-2", String(repeating: "x", count: 128)])
    func takesNames(suite: String) {
        #expect(plugin.error(inOptions: #"{"suite": "\#(suite)"}"#) == nil)
    }

    @Test(arguments: [
        "{}", #"{"suite": ""}"#, #"{"suite": 1}"#, #"{"suite": "../etc/passwd"}"#, #"{"suite": "a/b"}"#,
        #"{"suite": "/etc/passwd"}"#, #"{"suite": "."}"#, #"{"suite": ".."}"#, #"{"suite": ".hidden"}"#,
        #"{"suite": "-a"}"#, #"{"suite": "a b"}"#, #"{"suite": "a\u0000b"}"#, #"{"suite": "a\nb"}"#, #"{"suite": "é"}"#,
        #"{"suite": "a%2Fb"}"#, #"{"suite": "~"}"#, #"{"suite": "\#(String(repeating: "x", count: 129))"}"#,
    ])
    func pointsToErrors(options: String) throws {
        let error = try #require(plugin.error(inOptions: options))
        #expect(error.status == CRUDD_INVALID_OPTIONS)
        #expect(error.pointer == "/suite")
        #expect(error.message.contains("\"suite\""))
    }

    @Test func pointsToUnknownOptions() throws {
        let error = try #require(plugin.error(inOptions: #"{"suit": "a"}"#))
        #expect(error.pointer == "/suit")
        #expect(error.message.contains("\"suite\""))
    }

    @Test func declaresWhatItCan() {
        #expect(plugin.capabilities == UInt64(CRUDD_HAS_TRANSACTIONS | CRUDD_IS_DURABLE | CRUDD_HAS_EXPIRY))
    }
}
