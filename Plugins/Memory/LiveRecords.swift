/// What is in the log and still needed, in the order of the log: a list, whose links are in the records.
struct LiveRecords {
    private(set) var first: Record?
    private var last: Record?
    /// How many bytes they take in the log.
    private(set) var bytes = 0

    /// Appends a record that is in no list.
    mutating func append(_ record: Record, segment: UInt64) {
        // Numbers of segments of 1 MiB and more: the log has had 4 PiB by then.
        record.segment = UInt32(truncatingIfNeeded: segment)
        record.previous = last
        record.next = nil
        if let last { last.next = record } else { first = record }
        last = record
        bytes += record.loggedBytes
    }

    /// Removes a record of the list.
    mutating func remove(_ record: Record) {
        let (previous, next) = (record.previous, record.next)
        if let previous { previous.next = next } else { first = next }
        if let next { next.previous = previous } else { last = previous }
        record.previous = nil
        record.next = nil
        bytes -= record.loggedBytes
    }
}
