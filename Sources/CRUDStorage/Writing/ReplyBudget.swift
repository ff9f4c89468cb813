import Synchronization

/// How many bytes items may still take in the reply to a frame.
///
/// The reply to a patch holds the patched item, and only when it has been applied would it show that the reply
/// is too long for a frame. So the room is reserved before: on the thread that applies the patch, hence the atomic.
package final class ReplyBudget: Sendable {
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

    /// Gives room back.
    package func giveBack(_ count: Int) {
        bytes.add(count, ordering: .relaxed)
    }
}
