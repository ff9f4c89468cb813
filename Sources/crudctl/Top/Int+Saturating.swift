extension Int {
    /// The integer part of a number, or the nearest integer that there is; 0 for NaN.
    init(saturating number: Double) {
        self = Int(exactly: number.rounded(.towardZero)) ?? (number > 0 ? .max : number < 0 ? .min : 0)
    }
}
