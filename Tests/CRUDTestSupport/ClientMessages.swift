/// What a client of PostgreSQL sends on one connection
/// (<https://www.postgresql.org/docs/current/protocol-message-formats.html>).
struct ClientMessages {
    /// The texts of statements and scripts that came since this was emptied.
    var texts: [String] = []
    /// How many groups of statements came since this was reset: a client waits once for each.
    var groups = 0
    private var bytes: [UInt8] = []
    private var isStarted = false
    /// Of the messages since the last sync: a statement is executed, and whether all are the plugin's own upkeep.
    private var executes = false
    private var isUpkeep = true

    /// Takes some of the stream.
    mutating func take(_ more: ArraySlice<UInt8>) {
        bytes += more
        var position = 0
        while let end = end(of: position) {
            if isStarted {
                take(bytes[position], bytes[(position + 5)..<end])
            } else {
                isStarted = true
            }
            position = end
        }
        bytes.removeFirst(position)
    }

    /// The end of a message; nil where it has not come.
    private func end(of start: Int) -> Int? {
        // The first one has no type.
        let length = isStarted ? start + 1 : start
        guard bytes.count >= length + 4 else { return nil }
        let end = length + bytes[length..<(length + 4)].reduce(0) { $0 << 8 | Int($1) }
        return end <= bytes.count ? end : nil
    }

    private mutating func take(_ type: UInt8, _ body: ArraySlice<UInt8>) {
        let fields = body.split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false)
        switch UnicodeScalar(type) {
        case "P":
            let text = String(decoding: fields[1], as: UTF8.self)
            texts.append(text)
            // The lease is renewed at any time, on a connection of its own.
            if fields[0].isEmpty { isUpkeep = isUpkeep && (text.contains("expires_at = now()") || text == "SELECT 1") }
        case "Q":
            texts.append(String(decoding: fields[0], as: UTF8.self))
            groups += 1
        case "B":
            executes = true
            if !fields[1].isEmpty { isUpkeep = false }
        case "S":
            if executes, !isUpkeep { groups += 1 }
            (executes, isUpkeep) = (false, true)
        default: break
        }
    }
}
