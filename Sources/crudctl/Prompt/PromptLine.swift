/// A line of the prompt split into words, as a shell would: by spaces, with quotation marks and backslashes.
struct PromptLine {
    /// The words, without what quotes them.
    private(set) var words: [String] = []
    /// Where the last word begins, in characters; the end of the line where a space has ended it.
    private(set) var lastWordStart = 0
    /// Whether the line ends within the last word, or within nothing.
    private(set) var isInWord = false
    /// The quotation mark that has no other end.
    private(set) var openQuote: Character?

    init(_ line: [Character]) {
        var word = ""
        var isEscaped = false
        for (index, character) in line.enumerated() {
            if isEscaped {
                word.append(character)
                isEscaped = false
            } else if character == "\\", openQuote != "'" {
                begin(at: index)
                isEscaped = true
            } else if let quote = openQuote {
                if character == quote { openQuote = nil } else { word.append(character) }
            } else if character == "'" || character == "\"" {
                begin(at: index)
                openQuote = character
            } else if character == " " || character == "\t" {
                if isInWord { words.append(word) }
                (word, isInWord) = ("", false)
            } else {
                begin(at: index)
                word.append(character)
            }
        }
        if isInWord { words.append(word) } else { lastWordStart = line.count }
    }

    private mutating func begin(at index: Int) {
        if !isInWord { lastWordStart = index }
        isInWord = true
    }

    /// A word as it has to be typed.
    static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
                UInt8(ascii: "/"), UInt8(ascii: "="), UInt8(ascii: ":"), UInt8(ascii: "@"), 0x80...:
                true
            default: false
            }
        }
        return isPlain && !word.isEmpty ? word : "'" + word.replacing("'", with: #"'\''"#) + "'"
    }
}
