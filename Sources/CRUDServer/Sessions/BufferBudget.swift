import CRUDEventLoop

/// The bytes that all sessions of one event loop hold together: replies that their peers do not read, and large frames
/// of which a part has come.
///
/// Room for a large frame is reserved as soon as its length is known. A session that has room can finish its frame,
/// whatever the others do; sessions that merely kept what arrives could fill the memory with halves of frames, each
/// waiting for the others.
final class BufferBudget {
    var maximum: Int
    private let loop: EventLoop
    private var reserved = 0

    init(maximum: Int, loop: EventLoop) {
        self.maximum = maximum
        self.loop = loop
    }

    /// Whether less is held than may be.
    var hasRoom: Bool { reserved + loop.pendingOutputBytes < maximum }

    /// Whether so many bytes more may be held. A frame always finds room when nothing else is reserved.
    func hasRoom(for size: Int) -> Bool {
        reserved == 0 || reserved + loop.pendingOutputBytes + size <= maximum
    }

    /// Reserves room; false if there is none now.
    func reserve(_ size: Int) -> Bool {
        guard hasRoom(for: size) else { return false }
        reserved += size
        return true
    }

    /// Gives room back.
    func release(_ size: Int) {
        reserved -= size
    }
}
