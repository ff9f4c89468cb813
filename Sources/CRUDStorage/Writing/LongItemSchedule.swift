/// Which long items of a backend are being made: few at a time, for each is held in memory with the item that it is
/// made of, and one of a record at a time, for another one would be made in vain.
final class LongItemSchedule {
    enum Reservation: Hashable {
        case record(RecordKey)
        /// The items of an atomic batch, one after the other.
        case atomicBatch
    }

    private var reserved: Set<Reservation> = []

    /// How many are made at a time; more than there are processors, mostly.
    private static let maximumReservations = 16

    func admits(_ reservation: Reservation) -> Bool {
        reserved.count < Self.maximumReservations && !reserved.contains(reservation)
    }

    /// Reserves what nobody has reserved; false if somebody has, or there are too many.
    func reserve(_ reservation: Reservation) -> Bool {
        guard admits(reservation) else { return false }
        reserved.insert(reservation)
        return true
    }

    func release(_ reservation: Reservation) { reserved.remove(reservation) }
}
