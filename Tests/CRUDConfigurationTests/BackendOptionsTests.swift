import CRUDConfiguration
import CRUDModel
import Testing

@Suite struct BackendOptionsTests {
    private func backend(_ options: String) throws -> BackendConfiguration {
        try configuration("backends:\n  b:\n    plugin: x\n    options: \(options)\n").backends[0]
    }

    @Test(arguments: [
        ("{}", "{}"),
        ("{a: null, b: ~, c: , d: Null, e: nULL}", #"{"a":null,"b":null,"c":null,"d":null,"e":"nULL"}"#),
        ("{a: true, b: False, c: yes, d: on, e: tRUE}", #"{"a":true,"b":false,"c":"yes","d":"on","e":"tRUE"}"#),
        (
            "[0, -0, +12, 007, -010, 0o17, 0xFf, 0o18, 0xg, 0x, +0x1, 1_000]",
            ##"[0,-0,12,7,-10,15,255,"0o18","0xg","0x","+0x1","1_000"]"##
        ),
        (
            "[123456789012345678901234567890, 0xffffffffffffffff]",
            "[123456789012345678901234567890,18446744073709551615]"
        ),
        (
            "[1.50, .5, 5., -.5e3, +1E+2, 1e400, 00.10, 1e, ., -, 1.2.3, .e1, 12e03]",
            #"[1.50,0.5,5.0,-0.5e3,1e+2,1e400,0.10,"1e",".","-","1.2.3",".e1",12e03]"#
        ),
        (#"{"1": "1", '2': 'true', 3: "", 4: ".inf"}"#, #"{"1":"1","2":"true","3":"","4":".inf"}"#),
        (#"{a: "q\"b\\s\/\n\t\0\u001f é😀"}"#, #"{"a":"q\"b\\s/\n\t\u0000\u001f é😀"}"#),
        (
            "{2001-01-01: 12:30:45, a: [ [], {}, {b: {c: d}} ]}",
            #"{"2001-01-01":"12:30:45","a":[[],{},{"b":{"c":"d"}}]}"#
        ),
        (
            "\n      text: |\n        one\n        two\n      list:\n      - 1\n      - x y\n",
            #"{"text":"one\ntwo\n","list":[1,"x y"]}"#
        ),
    ])
    func becomeJSON(yaml: String, json: String) throws {
        let isObject = json.hasPrefix("{")
        let options = try backend(isObject ? yaml : "{v: \(yaml)}").options
        #expect(String(decoding: options, as: UTF8.self) == (isObject ? json : "{\"v\":\(json)}"))
        #expect(isJSON(options))
    }

    @Test(arguments: [
        ("", 5, 7), ("/path", 5, 13), ("/pool", 7, 9), ("/pool/size", 7, 15), ("/pool/hosts/1", 8, 20),
        ("/pool/hosts/2", 8, 16), ("/pool/hosts/-", 8, 16), ("/pool/missing/deeper", 7, 9), ("/missing", 5, 7),
        ("/a~1b", 9, 14), ("/m~0n", 10, 12), ("/~01", 11, 13), ("/", 12, 11), ("unknown", 5, 7), ("/path/x", 5, 13),
    ])
    func haveAPositionForEveryPointer(pointer: String, line: Int, column: Int) throws {
        let backend = try backend(
            #"""

                  path: /x
                  pool:
                    size: 3
                    hosts: [a, b]
                  "a/b": 1
                  m~n: 2
                  "~1": 3
                  "": 4
            """#)
        #expect(backend.position(ofOption: pointer) == SourcePosition(line: line, column: column))
    }

    @Test func haveTheBackendsPositionWhereThereAreNone() throws {
        let backend = try configuration(minimal).backends[0]
        #expect(backend.position(ofOption: "/path") == backend.position)
        #expect(backend.position == SourcePosition(line: 1, column: 12))
    }
}
