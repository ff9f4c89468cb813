/// A text in which `¶` marks the places that errors are expected at.
struct MarkedText {
    /// Without the marks.
    let text: String
    /// `LINE:COLUMN` of each mark, from 1.
    let positions: [String]

    init(_ marked: String) {
        var text = ""
        var positions: [String] = []
        var line = 1
        var column = 1
        for character in marked {
            switch character {
            case "¶":
                positions.append("\(line):\(column)")
                continue
            case "\n":
                line += 1
                column = 1
            default:
                column += 1
            }
            text.append(character)
        }
        self.text = text
        self.positions = positions
    }
}
