/// A line that is being typed, and the earlier ones that the arrow keys show in its place.
struct EditedLine {
    private(set) var text: [Character] = []
    /// Before which character the next one is inserted.
    private(set) var cursor = 0

    private let history: [String]
    /// Which of the earlier lines is shown; their number: what has been typed.
    private var shown: Int
    /// What was typed before an earlier line was shown.
    private var typed: [Character] = []

    /// What a key does that does not change the line.
    enum Outcome: Equatable {
        case changed
        /// The line is complete.
        case entered
        /// The line is given up.
        case cancelled
        case ended
        case completes
        case clearsScreen
    }

    /// - Parameter history: earlier lines, the last one last.
    init(history: [String] = []) {
        self.history = history
        shown = history.count
    }

    mutating func press(_ key: PromptKey) -> Outcome {
        switch key {
        case .character(let character): insert([character])
        case .enter: return .entered
        case .tab: return .completes
        case .left: cursor = max(0, cursor - 1)
        case .right: cursor = min(text.count, cursor + 1)
        case .home: cursor = 0
        case .end: cursor = text.count
        case .up: show(shown - 1)
        case .down: show(shown + 1)
        case .backspace: remove(from: max(0, cursor - 1), to: cursor)
        case .delete: remove(from: cursor, to: min(text.count, cursor + 1))
        case .deleteWord: remove(from: startOfWord, to: cursor)
        case .deleteToStart: remove(from: 0, to: cursor)
        case .deleteToEnd: remove(from: cursor, to: text.count)
        case .interrupt: return .cancelled
        case .endOfInput: return text.isEmpty ? .ended : press(.delete)
        case .clear: return .clearsScreen
        case .closed: return .ended
        case .unknown: break
        }
        return .changed
    }

    private mutating func insert(_ characters: [Character]) {
        text.insert(contentsOf: characters, at: cursor)
        cursor += characters.count
    }

    private mutating func remove(from start: Int, to end: Int) {
        text.removeSubrange(start..<end)
        cursor = start
    }

    /// Replaces what stands between a character and the cursor.
    mutating func replace(from start: Int, with word: String) {
        remove(from: start, to: cursor)
        insert(Array(word))
    }

    private var startOfWord: Int {
        var start = cursor
        while start > 0, text[start - 1] == " " { start -= 1 }
        while start > 0, text[start - 1] != " " { start -= 1 }
        return start
    }

    private mutating func show(_ index: Int) {
        guard 0...history.count ~= index, index != shown else { return }
        if shown == history.count { typed = text }
        text = index == history.count ? typed : Array(history[index])
        shown = index
        cursor = text.count
    }

    /// The part of the line that fits into so many columns, and the columns before the cursor in that.
    ///
    /// Of a long line, which is drawn for each character that is pasted, no more is read than is shown.
    func visible(in width: Int) -> (text: String, cursor: Int) {
        func columns(_ index: Int) -> Int { String(text[index]).displayWidth }
        var start = cursor
        var before = 0
        while start > 0, before + columns(start - 1) < width {
            start -= 1
            before += columns(start)
        }
        var end = cursor
        var all = before
        while end < text.count, all + columns(end) < width {
            all += columns(end)
            end += 1
        }
        return (String(text[start..<end]), before)
    }
}

/// A key, or several that do the same, as in Emacs and readline.
enum PromptKey: Equatable {
    case character(Character)
    case enter, tab, left, right, home, end, up, down
    case backspace, delete, deleteWord, deleteToStart, deleteToEnd
    /// Ctrl-C.
    case interrupt
    /// Ctrl-D.
    case endOfInput
    /// Ctrl-L.
    case clear
    /// There is no terminal any more.
    case closed
    case unknown

    /// - Parameter byte: a control character.
    init(control byte: UInt8) {
        self =
            switch byte {
            case 0x01: .home
            case 0x02: .left
            case 0x03: .interrupt
            case 0x04: .endOfInput
            case 0x05: .end
            case 0x06: .right
            case 0x08, 0x7F: .backspace
            case 0x09: .tab
            case 0x0A, 0x0D: .enter
            case 0x0B: .deleteToEnd
            case 0x0C: .clear
            case 0x0E: .down
            case 0x10: .up
            case 0x15: .deleteToStart
            case 0x17: .deleteWord
            default: .unknown
            }
    }

    /// - Parameter sequence: what follows ESC, such as `[A` (ECMA-48, xterm).
    init(escape sequence: String) {
        self =
            switch sequence {
            case "[A", "OA": .up
            case "[B", "OB": .down
            case "[C", "OC": .right
            case "[D", "OD": .left
            case "[H", "OH", "[1~", "[7~": .home
            case "[F", "OF", "[4~", "[8~": .end
            case "[3~": .delete
            default: .unknown
            }
    }
}
