import CRUDPluginABI
import CRUDPluginTesting
import CRUDTestSupport
import PluginTestSupport
import Testing

@Suite struct OptionsTests {
    private let plugin: ExportedPlugin

    init() throws {
        plugin = try ExportedPlugin("sqlite")
    }

    @Test(arguments: [
        #"{"path": "/a/b"}"#, #"{"path": "/a/b", "synchronous": "off"}"#, #"{"\u0070ath": "/caf\u00e9 😀"}"#,
        #"{"path": "/x", "mmap": true}"#, #"{"path": "/x", "mmap": false}"#,
        #"{"path": "/x", "reserve": 0}"#, #"{"path": "/x", "reserve": "1GiB"}"#,
        " {\"synchronous\" : \"normal\",\n\"path\":\"/x\"} ",
    ])
    func acceptsOptionsWithoutTouchingStorage(_ options: String) {
        #expect(plugin.error(inOptions: options) == nil)
    }

    @Test(arguments: [
        ("", "/path", "option \"path\" is missing"),
        ("{}", "/path", "option \"path\" is missing"),
        (#"{"path": 1}"#, "/path", "option \"path\" must be a string"),
        (#"{"path": null}"#, "/path", "option \"path\" must be a string"),
        (#"{"path": ["/x"]}"#, "/path", "option \"path\" must be a string"),
        (#"{"path": ""}"#, "/path", "option \"path\" must be an absolute path"),
        (#"{"path": "main.sqlite"}"#, "/path", "option \"path\" must be an absolute path"),
        (#"{"path": "/a\u0000b"}"#, "/path", "option \"path\" must be an absolute path"),
        (#"{"path": "/x", "path": "/y"}"#, "/path", "option \"path\" is given twice"),
        (#"{"pth": "/x"}"#, "/pth", "unknown option \"pth\"; did you mean \"path\"?"),
        (
            #"{"path": "/x", "synchronus": "off"}"#, "/synchronus",
            "unknown option \"synchronus\"; did you mean \"synchronous\"?"
        ),
        (#"{"a/b~c": 1}"#, "/a~1b~0c", "unknown option \"a/b~c\"; there are path, synchronous, mmap, reserve"),
        (
            #"{"path": "/x", "synchronous": "ful"}"#, "/synchronous",
            "option \"synchronous\" must be one of full, normal, off; did you mean full?"
        ),
        (#"{"path": "/x", "mmap": "on"}"#, "/mmap", "option \"mmap\" must be true or false"),
        (#"{"path": "/x", "synchronous": true}"#, "/synchronous", "option \"synchronous\" must be a string"),
        (
            #"{"path": "/x", "reserve": -1}"#, "/reserve",
            "option \"reserve\" must be a number of bytes, such as 67108864 or 64MiB, and at least 0"
        ),
        ("[]", "", "the options are not a JSON object"),
        (#"{"path": "/x""#, "", "the options are not a JSON object"),
        (#"{"path": "/x"} x"#, "", "the options are not a JSON object"),
    ])
    func refusesOptions(_ options: String, pointer: String, message: String) throws {
        let failure = try #require(plugin.error(inOptions: options))
        #expect(failure.status == CRUDD_INVALID_OPTIONS)
        #expect(failure.pointer == pointer)
        #expect(failure.message == message)
    }

    @Test func cutsLongMessagesAtACodePoint() throws {
        let name = String(repeating: "é", count: 600)
        let failure = try #require(plugin.error(inOptions: "{\"\(name)\": 1}"))
        #expect(failure.message.utf8.count == 511 || failure.message.utf8.count == 510)
        #expect(failure.status == CRUDD_INVALID_OPTIONS, "otherwise it is not valid UTF-8")
        #expect(failure.pointer.utf8.count == 255 || failure.pointer.utf8.count == 254)
    }

    @Test func declaresItself() throws {
        let path = try BuildProducts.path(of: "libsqlite.so")
        let exported = try ExportedPlugin.table(path: path)
        let table = exported.pointee
        #expect(table.struct_size == MemoryLayout<crudd_plugin>.size)
        #expect(table.abi_version == CRUDD_ABI_VERSION)
        #expect(String(cString: table.name) == "sqlite")
        #expect(
            table.capabilities
                == UInt64(
                    CRUDD_CAN_READ_CONCURRENTLY | CRUDD_CAN_READ_FAST | CRUDD_HAS_TRANSACTIONS | CRUDD_IS_DURABLE
                        | CRUDD_HAS_INDEXES | CRUDD_HAS_SEQUENCES | CRUDD_TAKES_HISTORY | CRUDD_HAS_EXPIRY))
        #expect(try ExportedPlugin.table(path: path) == exported)
    }
}
