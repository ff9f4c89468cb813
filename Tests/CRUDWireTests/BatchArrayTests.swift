import CRUDModel
import CRUDWire
import Testing

/// Frames that hold an array of requests.
@Suite struct BatchArrayTests {
    private let ping = #"{"jsonrpc":"2.0","id":1,"method":"daemon.ping"}"#

    private func elements(_ text: String, maximumDepth: Int = 128) -> [RequestOutcome] {
        var reading = FrameReading(maximumDepth: maximumDepth)
        return reading.read(array: text)
    }

    @Test func eachElementIsReadByItself() {
        let text = """
             [ {"jsonrpc":"2.0","id":"a","method":"record.exists","params":{"collection":"c","id":"i"}} ,
            {"jsonrpc":"2.0","method":"record.delete","params":{"id":"j","collection":"d"}},1,[],null,{},
            {"jsonrpc":"2.0","id":{},"method":"daemon.ping"},{"jsonrpc":"2.0","id":2,"method":"nope"},
            {"jsonrpc":"2.0","method":"nope"},{"jsonrpc":"2.0","method":"record.read","params":[]},
            {"jsonrpc":"2.0","id":3,"method":"record.read","params":{"id":"j"}},
            {"jsonrpc":"2.0","id":4,"id":5,"method":"daemon.ping"},
            \(ping)]
            """
        let invalid = RequestOutcome.error(.invalidRequest, id: nil, member: nil, isNotification: false)
        #expect(
            elements(text) == [
                .request(method: .recordExists, id: #""a""#, parameters: [#""c""#, #""i""#]),
                .request(method: .recordDelete, id: nil, parameters: [#""d""#, #""j""#]), invalid, invalid, invalid,
                invalid, invalid, .error(.methodNotFound, id: "2", member: nil, isNotification: false),
                .error(.methodNotFound, id: nil, member: nil, isNotification: true),
                .error(.invalidParams, id: nil, member: "params", isNotification: true),
                .error(.invalidParams, id: "3", member: "collection", isNotification: false), invalid,
                .request(method: .daemonPing, id: "1", parameters: []),
            ])
    }

    @Test func depthIsCheckedForEach() {
        func create(_ depth: Int) -> String {
            let item = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
            let params = #"{"collection":"c","id":"i","item":\#(item)}"#
            return #"{"jsonrpc":"2.0","id":1,"method":"record.create","params":\#(params)}"#
        }
        let outcomes = elements(
            "[\(create(8)),\(create(9)),\(create(100_000)),\(create(0).dropLast(2))1}}]", maximumDepth: 8)
        let tooDeep = RequestOutcome.error(.limitExceeded, id: "1", member: nil, isNotification: false)
        #expect(outcomes.count == 4)
        #expect(outcomes[1...2] == [tooDeep, tooDeep])
        for index in [0, 3] {
            if case .request = outcomes[index] { continue }
            Issue.record("element \(index) is fine")
        }
        // An array of arrays is not a request, however deep it is.
        let deep = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
        #expect(read(deep, maximumDepth: 8) == .array(1))
        #expect(elements(deep) == [.error(.invalidRequest, id: nil, member: nil, isNotification: false)])
    }

    @Test(arguments: ["[", "[1", "[1,", "[,]", "[1,]", "[1]]", "[1]1", "[1 1]", "[{]", "[{}}]"])
    func whatIsNoArrayIsAParseError(text: String) {
        #expect(read(text) == .error(.parseError, id: nil, member: nil, isNotification: false))
    }

    @Test(arguments: ["[]", " [ ] ", "[\n]"])
    func anEmptyArrayIsInvalid(text: String) {
        #expect(read(text) == .error(.invalidRequest, id: nil, member: nil, isNotification: false))
    }

    /// Of an array with too many elements only that fact is needed.
    @Test func noMoreElementsAreReturnedThanNeeded() {
        var reading = FrameReading(maximumElements: 3)
        func array(_ count: Int) -> String { "[" + repeatElement(ping, count: count).joined(separator: ",") + "]" }
        #expect(reading.read(array(3)) == .array(3))
        #expect(reading.read(array(4)) == .array(4))
        #expect(reading.read(array(5000)) == .array(4))
        #expect(
            reading.read(array(5000).dropLast() + ",]")
                == .error(.parseError, id: nil, member: nil, isNotification: false))
    }

    /// A reader is reused for one frame after another: nothing of one may affect the next.
    @Test func nothingIsLeftOfThePreviousFrame() {
        let texts = [
            ping, "{", #"{"jsonrpc":"2.0","method":"record.read","params":{"collection":"c","id":"i","fields":["a"]}}"#,
            #"{"jsonrpc":"2.0","id":9,"method":"record.read","params":{"collection":"c"}}"#, "1", "[1]", "[]", "",
            #"{"jsonrpc":"2.0","id":"x","method":"session.hello"}"#, "[[[[[[[[[[]]]]]]]]]]", "{}",
            #"{"jsonrpc":"2.0","id":null,"method":"record.delete","params":{"id":"i","collection":"c"}}"#,
            #"{"jsonrpc":"2.0","id":1,"method":"daemon.ping","more":[[[[[[[[[1]]]]]]]]]}"#,
        ]
        var reading = FrameReading(maximumDepth: 8)
        for first in texts {
            for second in texts {
                _ = reading.read(first)
                #expect(reading.read(second) == read(second, maximumDepth: 8), "\(second) after \(first)")
            }
        }
    }
}
