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
        #expect(plugin.fault(inOptions: #"{"suite": "\#(suite)"}"#) == nil)
    }

    @Test(arguments: [
        "{}", #"{"suite": ""}"#, #"{"suite": 1}"#, #"{"suite": "../etc/passwd"}"#, #"{"suite": "a/b"}"#,
        #"{"suite": "/etc/passwd"}"#, #"{"suite": "."}"#, #"{"suite": ".."}"#, #"{"suite": ".hidden"}"#,
        #"{"suite": "-a"}"#, #"{"suite": "a b"}"#, #"{"suite": "a\u0000b"}"#, #"{"suite": "a\nb"}"#, #"{"suite": "é"}"#,
        #"{"suite": "a%2Fb"}"#, #"{"suite": "~"}"#, #"{"suite": "\#(String(repeating: "x", count: 129))"}"#,
    ])
    func pointsToFaults(options: String) throws {
        let fault = try #require(plugin.fault(inOptions: options))
        #expect(fault.status == CRUDD_INVALID_OPTIONS)
        #expect(fault.pointer == "/suite")
        #expect(fault.message.contains("\"suite\""))
    }

    @Test func pointsToUnknownOptions() throws {
        let fault = try #require(plugin.fault(inOptions: #"{"suit": "a"}"#))
        #expect(fault.pointer == "/suit")
        #expect(fault.message.contains("\"suite\""))
    }

    @Test func declaresWhatItCan() {
        #expect(plugin.capabilities == UInt64(CRUDD_HAS_TRANSACTIONS | CRUDD_IS_DURABLE))
    }
}
