import CRUDModel
import CRUDWire
import Testing

/// Requests are read whatever the order of their members; errors have the id of the request and name the member.
@Suite struct RequestReaderTests {
    @Test(arguments: [
        #"{"jsonrpc":"2.0","id":1,"method":"record.read","params":{"collection":"c","id":"x"}}"#,
        #"{"params":{"id":"x","collection":"c"},"method":"record.read","id":1,"jsonrpc":"2.0"}"#,
        #" { "id" : 1 , "unknown" : [{}] , "params" : { "collection" : "c" , "id" : "x" } , "#
            + #""method" : "record.read" , "jsonrpc" : "2.0" } "#,
        #"{"\u006asonrpc":"2.\u0030","i\u0064":1,"metho\u0064":"record.rea\u0064","#
            + #""para\u006ds":{"c\u006fllection":"c","id":"x"}}"#,
    ])
    func readsMembersInAnyOrderAndSpelling(text: String) {
        #expect(read(text) == .request(method: .recordRead, id: "1", parameters: [#""c""#, #""x""#]))
    }

    /// The quick way through a compact request accepts nothing that the general way would not, which white space takes.
    @Test func compactRequestsAreReadAlike() {
        let parts = [
            #"{"jsonrpc":"2.0","#, #""id":"#, "12", #""a""#, "007", "-1", #","method":"record.read","#,
            #"{"method":"record.delete","#, #""params":{"#, #""collection":"c","#, #""id":"x"}"#, #""id":"x","#,
            #""collection":"ü"}"#, #""fields":[]"#, "}", ",", "{", #""id":"","#, #""jsonrpc":"2.0"}"#, "\u{7F}", "\\",
            #","method":"record.create","#, #","method":"record.patch","#, #""item":{"a":[1,{"b":"\u0041"}]},"#,
            #""item":{"a":1,"#, #""item":[[[[[[[[1]]]]]]]],"#, #""patch":null,"#, #""ifRevision":"r1","#,
            #""traceparent":"\#(Self.traceParent)","#, #","traceparent":1"#, #","traceparent":"\u0030""#,
        ]
        let samples = [
            [0, 1, 2, 6, 8, 9, 10, 14], [0, 1, 2, 21, 8, 9, 23, 10, 14], [0, 1, 3, 22, 8, 26, 27, 9, 10, 14],
            [0, 28, 1, 2, 6, 8, 9, 10, 14], [0, 1, 2, 29, 6, 28, 8, 9, 10, 14],
        ]
        var random = SystemRandomNumberGenerator()
        for number in 0..<6000 {
            var chosen = samples[number % samples.count]
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let place = Int.random(in: 0...chosen.count, using: &random)
                if Bool.random(using: &random), place < chosen.count {
                    chosen[place] = Int.random(in: parts.indices, using: &random)
                } else {
                    chosen.insert(Int.random(in: parts.indices, using: &random), at: place)
                }
            }
            let text = chosen.map { parts[$0] }.joined()
            #expect(read(text, maximumDepth: 5) == read(" " + text, maximumDepth: 5), "\(text)")
        }
    }

    private static let traceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    /// Wherever it stands, escapes decoded; another value is as good as none.
    @Test(
        arguments: [
            (#""\#(traceParent)""#, true), (#""\u0030\#(traceParent.dropFirst())""#, true), ("null", false),
            ("7", false),
            (#"["\#(traceParent)"]"#, false), (#""\#(traceParent.uppercased())""#, false),
            (#""\#(traceParent)\#(String(repeating: " ", count: 1000))""#, false),
            (#""01\#(traceParent.dropFirst(2))-\#(String(repeating: "x", count: 450))""#, true),
            (#""01\#(traceParent.dropFirst(2))-\#(String(repeating: "x", count: 512))""#, false),
        ] as [(String, Bool)])
    func theTraceIsAMemberOfTheRequest(value: String, isKnown: Bool) {
        let before = #"{"jsonrpc":"2.0","traceparent":\#(value),"id":1,"method":"record.exists","#
        let params = #""params":{"collection":"c","id":"x"}"#
        for text in [before + params + "}", before + " " + params + "}"] {
            var reading = FrameReading()
            #expect(reading.read(text) == .request(method: .recordExists, id: "1", parameters: [#""c""#, #""x""#]))
            #expect(reading.traceParent(text)?.traceID == (isKnown ? "4bf92f3577b34da6a3ce929d0e0e4736" : nil))
            _ = reading.read(#"{"jsonrpc":"2.0","id":1,"method":"record.exists",\#(params)}"#)
            #expect(reading.traceParent(text) == nil, "it is that of the request alone")
        }
        #expect(
            read(before + #""traceparent":1}"#)
                == .error(.invalidRequest, id: "1", member: nil, isNotification: false))
    }

    @Test(arguments: ["1", "-7", "0", "123456789012345678901234567890", #""a""#, #""\u0041""#, #""""#, "null"])
    func idsComeBackAsTheyWereSent(id: String) {
        #expect(
            read(#"{"jsonrpc":"2.0","id":\#(id),"method":"daemon.ping"}"#)
                == .request(method: .daemonPing, id: id, parameters: []))
    }

    @Test(arguments: ["1.0", "1e2", "true", "false", "[]", "{}"])
    func otherIDsAreInvalid(id: String) {
        #expect(
            read(#"{"jsonrpc":"2.0","id":\#(id),"method":"daemon.ping"}"#)
                == .error(.invalidRequest, id: nil, member: nil, isNotification: false))
    }

    @Test(
        arguments: [
            (#"{"jsonrpc":"2.0","id":5,"method":"daemon.ping","method":"daemon.ping"}"#, "5"),
            (#"{"jsonrpc":"2.0","id":5,"method":"daemon.ping","x":1,"\u0078":2}"#, "5"),
            (#"{"jsonrpc":"2.0","id":5,"id":5,"method":"daemon.ping"}"#, nil),
            (#"{"jsonrpc":"2.0","id":5,"method":"record.read","params":{"id":"a","id":"a"}}"#, "5"),
            (#"{"jsonrpc":"2.0","id":5,"method":"daemon.ping","params":{"x":1,"x":1}}"#, "5"),
            (#"{"jsonrpc":"1.0","id":5,"method":"daemon.ping"}"#, "5"), (#"{"id":5,"method":"daemon.ping"}"#, "5"),
            (#"{"jsonrpc":2.0,"id":5,"method":"daemon.ping"}"#, "5"), (#"{"jsonrpc":"2.0","id":5}"#, "5"),
            (#"{"jsonrpc":"2.0","id":5,"method":7}"#, "5"), (#"{"jsonrpc":"2.0"}"#, nil), ("{}", nil), ("1", nil),
            ("\"x\"", nil), ("null", nil), ("[]", nil),
        ] as [(String, String?)])
    func whatIsNoRequestIsInvalid(text: String, id: String?) {
        #expect(read(text) == .error(.invalidRequest, id: id, member: nil, isNotification: false))
    }

    @Test func everyOrderOfTheMembersIsTheSame() {
        let members = [
            #""jsonrpc":"2.0""#, #""id":"x""#, #""method":"record.exists""#, #""params":{"collection":"c","id":"i"}"#,
        ]
        for order in permutations(of: members) {
            #expect(
                read("{\(order.joined(separator: ","))}")
                    == .request(method: .recordExists, id: #""x""#, parameters: [#""c""#, #""i""#]))
            #expect(
                read("{\(order.joined(separator: ",")),\(order[0])}")
                    == .error(
                        .invalidRequest, id: order[0] == members[1] ? nil : #""x""#, member: nil, isNotification: false)
            )
        }
    }

    private func permutations(of members: [String]) -> [[String]] {
        if members.isEmpty { return [[]] }
        return members.indices.flatMap { index in
            var rest = members
            let first = rest.remove(at: index)
            return permutations(of: rest).map { [first] + $0 }
        }
    }

    /// Few members and many are compared in two ways, plainly spelt ones and escaped ones likewise.
    @Test(
        arguments: [2, 8, 9, 100],
        [("a", "a"), ("a", #"\u0061"#), (#"\u0061"#, #"\u0061"#), ("", ""), ("é", #"\u00E9"#)])
    func membersOfOneNameAreFound(count: Int, names: (String, String)) {
        let others = (2..<count).map { #""m\#($0)":0"# }
        let params = [[#""\#(names.0)":1"#], others, [#""\#(names.1)":1"#]].joined().joined(separator: ",")
        #expect(
            read(#"{"jsonrpc":"2.0","id":1,"method":"daemon.ping","params":{\#(params)}}"#)
                == .error(.invalidRequest, id: "1", member: nil, isNotification: false))
    }

    @Test(arguments: [("a", "A"), ("e\u{301}", "\u{E9}"), ("a", "a "), (#"\u0061b"#, "a"), (#"\\u0061"#, "a")])
    func otherNamesAreOthers(first: String, second: String) {
        #expect(
            read(#"{"jsonrpc":"2.0","id":1,"method":"daemon.ping","\#(first)":1,"\#(second)":1}"#)
                == .request(method: .daemonPing, id: "1", parameters: []))
    }

    @Test func manyMembersAreComparedToo() {
        let members = (0..<5000).map { #""m\#($0)":0"# }.joined(separator: ",")
        let request = #"{"jsonrpc":"2.0","id":1,"method":"daemon.ping",\#(members)"#
        #expect(read(request + "}") == .request(method: .daemonPing, id: "1", parameters: []))
        #expect(
            read(request + #","m4999":1}"#) == .error(.invalidRequest, id: "1", member: nil, isNotification: false))
    }

    @Test(arguments: [
        (#"{"collection":"c"}"#, "id"), (#"{"id":"x"}"#, "collection"), (#"{"collection":"c","id":1}"#, "id"),
        (#"{"collection":null,"id":"x"}"#, "collection"), (#"{"collection":"c","id":""}"#, "id"),
        (#"{"collection":"c","id":"x","item":1}"#, "item"), (#"{"collection":"c","id":"x","fields":"a"}"#, "fields"),
        (#"{"collection":"c","id":"x","unknown":1}"#, "unknown"), (#"{"collection":"c","id":"\u0000"}"#, "id"),
        (#"{"collection":"c","id":"\u007f"}"#, "id"), ("[]", "params"), ("null", "params"), ("\"c\"", "params"),
    ])
    func invalidParametersAreNamed(params: String, member: String) {
        #expect(
            read(#"{"jsonrpc":"2.0","id":1,"method":"record.read","params":\#(params)}"#)
                == .error(.invalidParams, id: "1", member: member, isNotification: false))
    }

    @Test(arguments: MethodTable.definitions.map(\.method))
    func whatTheTableRequiresIsRequired(method: Method) {
        let required = method.definition.required
        let expected: RequestOutcome =
            required.isEmpty
            ? .request(method: method, id: "1", parameters: [])
            : .error(
                .invalidParams, id: "1",
                member: Parameter.allCases.first { required.contains($0) }?.name.description, isNotification: false)
        #expect(read(#"{"jsonrpc":"2.0","id":1,"method":"\#(method.name)"}"#) == expected)
    }

    @Test func notificationsHaveNoID() {
        #expect(
            read(#"{"jsonrpc":"2.0","method":"daemon.ping"}"#)
                == .request(method: .daemonPing, id: nil, parameters: []))
        #expect(
            read(#"{"jsonrpc":"2.0","method":"nope"}"#)
                == .error(.methodNotFound, id: nil, member: nil, isNotification: true))
    }

    @Test func errorsOfDeepRequestsHaveTheirID() {
        func request(_ depth: Int) -> String {
            let item = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
            let params = #"{"collection":"c","item":\#(item),"id":"x"}"#
            return #"{"params":\#(params),"method":"record.create","jsonrpc":"2.0","id":9}"#
        }
        if case .error = read(request(8), maximumDepth: 8) { Issue.record("eight levels are allowed") }
        #expect(
            read(request(9), maximumDepth: 8) == .error(.limitExceeded, id: "9", member: nil, isNotification: false))
        #expect(
            read(request(50_000), maximumDepth: 8)
                == .error(.limitExceeded, id: "9", member: nil, isNotification: false))
    }

    @Test func arraysTellTheirElements() {
        #expect(read("[1,{},[]]") == .array(3))
        #expect(read("[1,]") == .error(.parseError, id: nil, member: nil, isNotification: false))
        #expect(read("[1] x") == .error(.parseError, id: nil, member: nil, isNotification: false))
    }
}
