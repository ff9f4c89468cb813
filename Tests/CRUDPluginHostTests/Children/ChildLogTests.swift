import CRUDPluginABI
import Testing

@testable import CRUDPluginHost

@Suite struct ChildLogTests {
    private final class Lines {
        var lines: [String] = []
    }

    /// What comes of texts that arrive one after the other, each at its time in milliseconds.
    private func lines(_ texts: [(text: [UInt8], time: Int)], ends: Bool = true) -> [String] {
        let lines = Lines()
        var log = ChildLog { level, line in lines.lines.append("\(level.rawValue) \(line)") }
        let start = ContinuousClock.now
        for (text, time) in texts {
            text.withUnsafeBytes { log.append($0, now: start + .milliseconds(time)) }
        }
        if ends { log.end() }
        return lines.lines
    }

    private func lines(_ text: String) -> [String] { lines([(Array(text.utf8), 0)]) }

    @Test func levelsAreUnderstood() {
        let text = "plain\n<3>e\n<4>w\n<5>n\n<6>i\n<7>d\n<8>x\n<4w\n<>\n"
        #expect(lines(text) == ["1 plain", "3 e", "2 w", "1 n", "1 i", "0 d", "1 <8>x", "1 <4w", "1 <>"])
    }

    @Test func linesComeInPieces() {
        #expect(lines([(Array("a".utf8), 0), (Array("b\nc".utf8), 1)], ends: false) == ["1 ab"])
        #expect(lines([(Array("a".utf8), 0), (Array("b\nc".utf8), 1)]) == ["1 ab", "1 c"])
    }

    @Test func whatIsNoTextIsMadeOne() {
        #expect(lines([([0x1B, 0x5B, 0x00, 0x09, 0x7F, 0xFF, 0x0A], 0)]) == ["1 ?[?\t?\u{FFFD}"])
    }

    @Test func longLinesAreCut() {
        let cut = lines(String(repeating: "x", count: 100_000) + "\nnext\n")
        #expect(cut == ["1 " + String(repeating: "x", count: 2048) + "…", "1 next"])
    }

    @Test func aFloodIsCounted() {
        let flood = Array(String(repeating: "x\n", count: 1000).utf8)
        let seen = lines([(flood, 0), (Array("later\n".utf8), 1000)])
        #expect(seen.count == 52)
        #expect(seen.suffix(2) == ["2 (950 more lines left out)", "1 later"])
        #expect(lines([(flood, 0)]).last == "2 (950 more lines left out)")
    }
}
