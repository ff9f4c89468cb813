/// A time that a plugin reports, in milliseconds since 1970-01-01 UTC, 0 for never.
///
/// Any number may be stored there by other means. What is beyond the times that anything computes with is taken for
/// the nearest one that is not, where it enters the host: nothing behind that checks for overflows.
package enum StoredTime {
    /// 9999-12-31T23:59:59.999Z
    private static let latest: Int64 = 253_402_300_799_999

    /// - Returns: 0 for never; 1, a time that is over, for what is below 0.
    package static func clamped(_ stored: Int64) -> Int64 { stored == 0 ? 0 : min(max(stored, 1), latest) }
}
