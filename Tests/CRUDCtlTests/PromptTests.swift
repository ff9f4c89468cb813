import CRUDTestSupport
import Glibc
import Testing

@testable import crudctl

/// The prompt's line, its words, completion and history.
@Suite struct PromptTests {
    private static func edited(_ keys: [PromptKey], history: [String] = []) -> [String] {
        var line = EditedLine(history: history)
        for key in keys { _ = line.press(key) }
        return [String(line.text), "\(line.cursor)"]
    }

    private static func visible(_ line: EditedLine, _ width: Int) -> [String] {
        let (text, cursor) = line.visible(in: width)
        return [text, "\(cursor)"]
    }

    private static func typed(_ text: String) -> [PromptKey] { text.map { .character($0) } }

    @Test func editsALine() {
        let word = Self.typed("abc")
        #expect(Self.edited(word + [.left, .left, .character("é"), .end, .character("d")]) == ["aébcd", "5"])
        #expect(Self.edited(word + [.home, .delete, .right, .backspace, .left, .left]) == ["c", "0"])
        #expect(Self.edited(Self.typed("read  my x ") + [.deleteWord, .deleteWord]) == ["read  ", "6"])
        #expect(Self.edited(word + [.left, .deleteToEnd, .home, .deleteToStart, .unknown]) == ["ab", "0"])
        #expect(Self.edited(word + [.left, .endOfInput]) == ["ab", "2"])
        var line = EditedLine()
        let keys: [PromptKey] = [.endOfInput, .closed, .backspace, .enter, .interrupt, .tab, .clear]
        let outcomes = keys.map { line.press($0) }
        #expect(outcomes == [.ended, .ended, .changed, .entered, .cancelled, .completes, .clearsScreen])
    }

    @Test func arrowsShowEarlierLines() {
        let history = ["first", "second"]
        let typed = Self.typed("new")
        #expect(Self.edited(typed + [.up], history: history)[0] == "second")
        #expect(Self.edited(typed + [.up, .up, .up, .up], history: history)[0] == "first")
        #expect(Self.edited(typed + [.up, .up, .down, .down, .down], history: history)[0] == "new")
        #expect(Self.edited(typed + [.up, .character("!")], history: history) == ["second!", "7"])
    }

    @Test func showsThePartOfALongLineThatHasTheCursor() {
        var line = EditedLine()
        for key in Self.typed("0123456789") { _ = line.press(key) }
        #expect(Self.visible(line, 20) == ["0123456789", "10"])
        #expect(Self.visible(line, 5) == ["6789", "4"])
        _ = line.press(.home)
        #expect(Self.visible(line, 5) == ["0123", "0"])
        var wide = EditedLine()
        for key in Self.typed("日本語") { _ = wide.press(key) }
        #expect(Self.visible(wide, 5) == ["本語", "4"])
    }

    /// Of a pasted item of some kilobytes only what is shown is read at each character, or it would take hours.
    @Test func aLongLineIsPasted() {
        var line = EditedLine()
        for key in Self.typed(String(repeating: "0123456789", count: 1000)) {
            _ = line.press(key)
            _ = line.visible(in: 20)
        }
        #expect(Self.visible(line, 5) == ["6789", "4"])
    }

    @Test func candidatesAreNotBroken() {
        let words = ["a", "bc", "日本", "def", "a long one"]
        #expect(PromptCompletion.lines(of: words, width: 9) == ["a  bc", "日本  def", "a long one"])
        #expect(PromptCompletion.lines(of: words, width: 100) == ["a  bc  日本  def  a long one"])
    }

    @Test(arguments: [
        ("read c x", ["read", "c", "x"], 7), ("  read  ", ["read"], 8), ("", [] as [String], 0),
        (#"create c x '{"a": "b c"}'"#, ["create", "c", "x", #"{"a": "b c"}"#], 11),
        (#"read "my \"c\"" a\ b"#, ["read", #"my "c""#, "a b"], 16), ("read ''", ["read", ""], 5),
    ])
    func splitsALineAsAShellDoes(_ text: String, _ words: [String], _ start: Int) {
        let line = PromptLine(Array(text))
        #expect(line.words == words && line.lastWordStart == start && line.openQuote == nil)
    }

    @Test func knowsAnOpenQuotationMarkAndQuotesWords() {
        #expect(PromptLine(Array("read 'my c")).openQuote == "'" && PromptLine(Array("a \"'")).openQuote == "\"")
        for word in ["plain", "with space", "it's", "\"", "", "a\\b", "$HOME", "ü"] {
            #expect(PromptLine(Array("read \(PromptLine.quoted(word))")).words == ["read", word])
        }
    }

    private static func candidates(_ text: String, options: [String] = []) async -> [String] {
        await PromptCompletion(PromptLine(Array(text)), options: options).candidates
    }

    @Test func completesCommandsOptionsAndCollections() async throws {
        #expect(await Self.candidates("dele") == ["delete", "delete-matching"])
        let all = await Self.candidates("")
        #expect(all.contains("exit") && all.count > 30)
        #expect(await Self.candidates("help rel") == ["reload"])
        #expect(await Self.candidates("reload --d") == ["--detach", "--dry-run"])
        #expect(await Self.candidates("nothing x").isEmpty)
        #expect(await Self.candidates("can root record.read") == ["record.read", "record.readMany"])
        #expect(await Self.candidates("call daemon.p") == ["daemon.ping"])
        #expect(await Self.candidates("log-level n") == ["notice"])
        #expect(PromptCompletion.commonPrefix(of: ["delete", "delete-matching"]) == "delete")
        let usage = try #require(CommandUsage(of: "read"))
        #expect(usage.argument(after: []) == "collection" && usage.argument(after: ["c"]) == "id")
        #expect(usage.argument(after: ["--timeout"]) == nil)
        #expect(usage.argument(after: ["--timeout", "3"]) == "collection")
    }

    @Test func remembersLinesInAFileOfItsUser() throws {
        let directory = try TemporaryDirectory()
        var history = PromptHistory(directory: directory.path + "/new")
        for line in ["one", "two", "two", " secret", ""] { history.append(line) }
        #expect(history.lines == ["one", "two"])
        let path = directory.path + "/new/crudctl/history"
        #expect(Files.status(path)?.st_mode == S_IFREG | 0o600)
        #expect(Files.status(directory.path + "/new/crudctl")?.st_mode == S_IFDIR | 0o700)
        #expect(PromptHistory(directory: directory.path + "/new").lines == ["one", "two"])
        for number in 0..<2500 { history.append("line \(number)") }
        let again = PromptHistory(directory: directory.path + "/new")
        #expect(again.lines.count == 1000 && again.lines.last == "line 2499")
        #expect(try Files.read(path).split(separator: 0x0A).count == 1000, "the file does not grow for ever")
        #expect(Files.status(path)?.st_mode == S_IFREG | 0o600)
    }
}
