import Glibc

/// Lines at the bottom of a terminal that are drawn again and again. They are written to standard error.
final class ProgressDisplay {
    /// How often lines are drawn, at most.
    private static let interval = Duration.milliseconds(100)
    /// Where the terminal does not tell.
    private static let defaultWidth = 80
    private static let defaultHeight = 24

    /// Cursor up by so many lines; erase to the end of the line (ECMA-48: CUU, EL).
    private static func up(_ lines: Int) -> String { lines > 0 ? "\u{1B}[\(lines)A" : "" }
    private static let eraseLine = "\u{1B}[K"

    private var lines: [ProgressLine] = []
    private var paces: [ProgressPace] = []
    private var isDrawn = false
    private var lastDrawing: ContinuousClock.Instant?
    /// How many lines the terminal shows.
    private var drawn = 0

    private init() {}

    /// A display, if standard error is a terminal.
    ///
    /// - Parameter output: whether results are written meanwhile, between which lines would be lost.
    static func onTerminal(besidesOutput output: Bool = false) -> ProgressDisplay? {
        isatty(STDERR_FILENO) == 1 && !(output && isatty(STDOUT_FILENO) == 1) ? ProgressDisplay() : nil
    }

    /// Shows how far each job has come; the order of the jobs is always the same.
    func show(_ lines: [ProgressLine]) {
        let now = ContinuousClock.now
        self.lines = lines
        isDrawn = false
        if let lastDrawing, now - lastDrawing < Self.interval { return }
        draw(at: now)
    }

    /// Draws the lines for the last time, and leaves them on the terminal.
    func end() {
        guard !lines.isEmpty else { return }
        if !isDrawn { draw(at: .now) }
        StandardError.writeComposed("\n")
        lines = []
        drawn = 0
    }

    private func draw(at time: ContinuousClock.Instant) {
        isDrawn = true
        lastDrawing = time
        let terminal = Terminal(of: STDERR_FILENO, allowsColor: false)
        // A line that is as wide as the terminal would be followed by an empty one on some.
        let width = max(1, (terminal.width ?? Self.defaultWidth) - 1)
        let height = max(1, (terminal.height ?? Self.defaultHeight) - 1)
        while paces.count < lines.count { paces.append(ProgressPace()) }
        for index in lines.indices { paces[index].note(lines[index], at: time) }
        var texts = zip(lines, paces).map { $0.text(width: width, pace: $1) }
        if texts.count > height {
            let others = "and \(texts.count - height + 1) more".cut(to: width)
            texts = texts.prefix(height - 1) + [others]
        }
        let text = texts.map { $0 + Self.eraseLine }.joined(separator: "\n")
        StandardError.writeComposed("\r" + Self.up(drawn - 1) + text)
        drawn = texts.count
    }
}
