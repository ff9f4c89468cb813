extension Duration {
    /// In milliseconds, rounded away from zero, which has a meaning of its own; nil if these are too many.
    package var wholeMilliseconds: Int? {
        let (seconds, attoseconds) = components
        guard seconds.magnitude < 1 << 40 else { return nil }
        let (milliseconds, rest) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000_000_000)
        return Int(seconds * 1000 + milliseconds + rest.signum())
    }

    /// In seconds, as a decimal number with the precision of milliseconds.
    var secondsText: String {
        guard let milliseconds = wholeMilliseconds else { return String(components.seconds) }
        let fraction = milliseconds.magnitude % 1000
        let seconds = "\(milliseconds < 0 ? "-" : "")\(milliseconds.magnitude / 1000)"
        return fraction == 0 ? seconds : "\(seconds).\(String(1000 + fraction).dropFirst())"
    }
}
