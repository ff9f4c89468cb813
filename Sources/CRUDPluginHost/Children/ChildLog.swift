import CRUDPluginABI

/// Makes log lines of what a child writes to standard error.
///
/// A line may begin with `<3>` (error), `<4>` (warning), `<5>` or `<6>` (information) or `<7>` (debugging), as
/// [sd-daemon(3)](https://www.freedesktop.org/software/systemd/man/latest/sd-daemon.html) has it; any other is
/// information. Lines are cut where they are too long, and a flood is thinned out.
struct ChildLog {
    private var line: [UInt8] = []
    private var isCut = false
    private var windowStart = ContinuousClock.now
    private var linesInWindow = 0
    private var leftOut = 0
    private let write: (crudd_log_level, String) -> Void

    private static let maximumLineBytes = 2048
    private static let maximumLinesPerSecond = 50

    init(_ write: @escaping (crudd_log_level, String) -> Void) {
        self.write = write
    }

    /// Takes what has been read.
    mutating func append(_ bytes: UnsafeRawBufferPointer, now: ContinuousClock.Instant = .now) {
        for byte in bytes {
            if byte == UInt8(ascii: "\n") {
                endLine(now)
            } else if line.count < Self.maximumLineBytes {
                line.append(byte)
            } else {
                isCut = true
            }
        }
    }

    /// Nothing more will come.
    mutating func end() {
        if !line.isEmpty { endLine(.now) }
        tellLeftOut()
    }

    private mutating func endLine(_ now: ContinuousClock.Instant) {
        defer {
            line.removeAll(keepingCapacity: true)
            isCut = false
        }
        if now - windowStart >= .seconds(1) {
            tellLeftOut()
            (windowStart, linesInWindow) = (now, 0)
        }
        linesInWindow += 1
        guard linesInWindow <= Self.maximumLinesPerSecond else {
            leftOut += 1
            return
        }
        let (level, text) = Self.level(of: line)
        let printable = String(decoding: text.map { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F ? 0x3F : $0 }, as: UTF8.self)
        write(level, isCut ? printable + "…" : printable)
    }

    private mutating func tellLeftOut() {
        if leftOut > 0 { write(CRUDD_LOG_WARNING, "(\(leftOut) more lines left out)") }
        leftOut = 0
    }

    private static func level(of line: [UInt8]) -> (crudd_log_level, ArraySlice<UInt8>) {
        guard line.count >= 3, line[0] == UInt8(ascii: "<"), line[2] == UInt8(ascii: ">") else {
            return (CRUDD_LOG_INFO, line[...])
        }
        let level: crudd_log_level
        switch line[1] {
        case UInt8(ascii: "0")...UInt8(ascii: "3"): level = CRUDD_LOG_ERROR
        case UInt8(ascii: "4"): level = CRUDD_LOG_WARNING
        case UInt8(ascii: "5"), UInt8(ascii: "6"): level = CRUDD_LOG_INFO
        case UInt8(ascii: "7"): level = CRUDD_LOG_DEBUG
        default: return (CRUDD_LOG_INFO, line[...])
        }
        return (level, line[3...])
    }
}
