import CRUDJSON
import CRUDModel
import CRUDWire
import Testing

/// The parameters of each method, according to the method table.
@Suite struct ParameterTests {
    /// A value that the parameter may have.
    private static func value(_ parameter: Parameter) -> String {
        if parameter.isBoolean { return "true" }
        return switch parameter.kind {
        case .string: #""x""#
        case .array: "[]"
        case .number: "1"
        case .true: "true"
        case nil, .object, .false, .null: #"{"any":[1]}"#
        }
    }

    private static func request(_ method: Method, _ members: [String], id: String = "1") -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method.name)","params":{\#(members.joined(separator: ","))}}"#
    }

    private static func member(_ parameter: Parameter) -> String { #""\#(parameter.name)":\#(value(parameter))"# }

    private static func accepted(_ method: Method, _ parameters: [Parameter]) -> RequestOutcome {
        .request(
            method: method, id: "1",
            parameters: Parameter.allCases.filter { parameters.contains($0) }.map { value($0) })
    }

    /// The parameters of the shortest request.
    private static func fewest(of method: Method) -> [Parameter] {
        method.definition.required + method.definition.alternatives.prefix(1)
    }

    private static func refused(_ parameter: Parameter) -> RequestOutcome {
        .error(.invalidParams, id: "1", member: parameter.name.description, isNotification: false)
    }

    @Test(arguments: Method.allCases)
    func whatIsOptionalMayBeThere(method: Method) {
        let (required, optional) = (method.definition.required, method.definition.optional)
        for choice in 0..<(1 << optional.count) {
            let chosen = required + optional.indices.filter { choice >> $0 & 1 == 1 }.map { optional[$0] }
            let alternatives = method.definition.alternatives
            guard alternatives.isEmpty || alternatives.contains(where: chosen.contains) else {
                #expect(read(Self.request(method, chosen.map(Self.member))) == Self.refused(alternatives[0]))
                continue
            }
            for order in [chosen, chosen.reversed()] {
                #expect(
                    read(Self.request(method, order.map(Self.member))) == Self.accepted(method, chosen))
            }
        }
    }

    @Test(arguments: Method.allCases)
    func whatIsRequiredMustBeThere(method: Method) {
        let definition = method.definition
        for missing in definition.required {
            let others = (definition.required + definition.optional).filter { $0 != missing }
            #expect(read(Self.request(method, others.map(Self.member))) == Self.refused(missing))
        }
    }

    @Test(arguments: Method.allCases)
    func everythingElseIsRefused(method: Method) {
        let definition = method.definition
        for parameter in Parameter.allCases where !(definition.required + definition.optional).contains(parameter) {
            let members = Self.fewest(of: method).map(Self.member) + [Self.member(parameter)]
            #expect(read(Self.request(method, members)) == Self.refused(parameter))
        }
        for name in ["", "Collection", "ID", "colle", "collectionx", "\\u0000"] {
            let members = Self.fewest(of: method).map(Self.member) + [#""\#(name)":1"#]
            #expect(
                read(Self.request(method, members))
                    == .error(
                        .invalidParams, id: "1", member: name == "\\u0000" ? "\0" : name, isNotification: false))
        }
    }

    @Test(arguments: Method.allCases)
    func everyParameterHasItsKind(method: Method) {
        let definition = method.definition
        let values: [(kind: JSONKind, text: String)] = [
            (.null, "null"), (.true, "true"), (.false, "false"), (.number, "7"), (.string, #""x""#), (.array, "[]"),
            (.object, "{}"),
        ]
        for parameter in definition.required + definition.optional {
            let others = Self.fewest(of: method).filter { $0 != parameter }.map(Self.member)
            for value in values where parameter.kind != nil && parameter.kind != value.kind {
                // One kind in a table, two in a text.
                if parameter.kind == .true, value.kind == .false { continue }
                if [.recordPatch, .recordTouch].contains(method), parameter == .ttl, value.kind == .null { continue }
                if method == .requestCancel, value.kind == .null || value.kind == .number { continue }
                let request = Self.request(method, others + [#""\#(parameter.name)":\#(value.text)"#])
                #expect(read(request) == Self.refused(parameter))
            }
        }
    }

    /// That of `request.cancel` is whatever a request may have; no rule of records' ids applies to it.
    @Test func theIDOfARequest() {
        let long = #""\#(String(repeating: "x", count: 600))""#
        for id in ["null", "0", "-7", "123456789012345678901234567890", #""""#, #""\u0000""#, long] {
            #expect(
                read(Self.request(.requestCancel, [#""id":\#(id)"#]))
                    == .request(method: .requestCancel, id: "1", parameters: [id]))
        }
        for id in ["1.0", "1e3", "true", "{}", "[]"] {
            #expect(read(Self.request(.requestCancel, [#""id":\#(id)"#])) == Self.refused(.id))
        }
    }

    @Test func anItemIsAnything() {
        for item in ["null", "true", "-0.0e+1", #""""#, "[]", "{}", #"{"a":1,"a":2}"#, #"[" \u0000"]"#] {
            #expect(
                read(Self.request(.recordCreate, [#""collection":"c","id":"i","item":\#(item)"#]))
                    == .request(method: .recordCreate, id: "1", parameters: [#""c""#, #""i""#, item]))
        }
    }

    // MARK: Texts

    /// A string value of so many bytes, as plain text and with an escape in it, which counts as what it stands for.
    private func spellings(bytes: Int) -> [String] {
        let endings: [(text: String, bytes: Int)] = [
            ("x", 1), (#"\u0078"#, 1), ("é", 2), (#"\u00e9"#, 2), ("😀", 4), (#"\ud83d\ude00"#, 4),
        ]
        return endings.map { ending in
            "\"\(String(repeating: "x", count: bytes - ending.bytes))\(ending.text)\""
        }
    }

    @Test(arguments: [(.id, 512), (.collection, 128), (.ifRevision, 64)] as [(Parameter, Int)])
    func textsHaveTheirLength(parameter: Parameter, maximum: Int) {
        func outcome(_ value: String) -> RequestOutcome {
            let others = [Parameter.collection, .id].filter { $0 != parameter }.map(Self.member)
            return read(Self.request(.recordDelete, others + [#""\#(parameter.name)":\#(value)"#]))
        }
        for value in spellings(bytes: maximum) {
            if case .error = outcome(value) { Issue.record("\(parameter) of \(maximum) bytes: \(value)") }
        }
        for value in spellings(bytes: maximum + 1) { #expect(outcome(value) == Self.refused(parameter)) }
    }

    @Test(arguments: [.id, .collection] as [Parameter])
    func idsAndNamesFollowTheirRule(parameter: Parameter) {
        func outcome(_ content: String) -> RequestOutcome {
            let others = [Parameter.collection, .id].filter { $0 != parameter }.map(Self.member)
            return read(Self.request(.recordExists, others + [#""\#(parameter.name)":"\#(content)""#]))
        }
        for content in ["", #"\u0000"#, #"a\u001fb"#, #"\n"#, #"\t"#, #"\b"#, #"\u007f"#, "\u{7F}", "a\u{7F}"] {
            #expect(outcome(content) == Self.refused(parameter), "\(content)")
        }
        for content in ["a", " ", "../../etc/passwd", "😀", #"\ud83d\ude00"#, #"\""#, #"\\"#, #"\/"#, "\u{80}"] {
            if case .error = outcome(content) { Issue.record("\(content)") }
        }
    }

    @Test(arguments: [("1", true), ("-3", true), ("99999999999999999999", true), ("1.0", false), ("1e0", false)])
    func theProtocolIsAnInteger(value: String, isFine: Bool) {
        let request = Self.request(.sessionHello, [#""protocol":\#(value)"#])
        #expect(
            read(request)
                == (isFine
                    ? .request(method: .sessionHello, id: "1", parameters: [value]) : Self.refused(.protocolVersion)))
    }

    @Test(arguments: Method.allCases)
    func paramsMayBeLeftOutWhereNothingIsRequired(method: Method) {
        let definition = method.definition
        guard definition.required.isEmpty else { return }
        for params in ["", #","params":{}"#] {
            #expect(
                read(#"{"jsonrpc":"2.0","id":1,"method":"\#(method.name)"\#(params)}"#) == Self.accepted(method, []))
        }
        for params in ["null", "[]", "[1]", "0", "false", #""""#] {
            #expect(
                read(#"{"jsonrpc":"2.0","id":1,"method":"\#(method.name)","params":\#(params)}"#)
                    == .error(.invalidParams, id: "1", member: "params", isNotification: false))
        }
    }
}
