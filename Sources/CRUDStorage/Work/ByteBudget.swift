import Synchronization

/// How many bytes may still be taken, by any thread.
///
/// The reply to a patch holds the patched item, and only when it has been applied would it show that the reply is too
/// long for a frame. So the room for items is reserved before, on the thread that applies the patch. A record that is
/// longer than the room its read was given takes the rest of an event loop's reserve, on the thread that reads it.
package final class ByteBudget: Sendable {
    private let bytes: Atomic<Int>
    private let exceeded = Atomic(false)

    package init(bytes: Int) {
        self.bytes = Atomic(bytes)
    }

    /// Takes room for an item that a patch has made. Where there is none, no patch behind it is applied in vain.
    func take(itemOf count: Int) -> Bool {
        guard take(count) else {
            exceeded.store(true, ordering: .relaxed)
            return false
        }
        return true
    }

    /// Whether an item has not found room.
    var isExceeded: Bool { exceeded.load(ordering: .relaxed) }

    /// How much is left.
    package var left: Int { bytes.load(ordering: .relaxed) }

    /// Takes room for so many bytes; false if there is not so much.
    package func take(_ count: Int) -> Bool {
        var available = bytes.load(ordering: .relaxed)
        while available >= count {
            let (exchanged, original) = bytes.compareExchange(
                expected: available, desired: available - count, ordering: .relaxed)
            if exchanged { return true }
            available = original
        }
        return false
    }

    /// Gives room back; more, or with a negative count less, may be taken in all from now on.
    package func giveBack(_ count: Int) {
        bytes.add(count, ordering: .relaxed)
    }
}
