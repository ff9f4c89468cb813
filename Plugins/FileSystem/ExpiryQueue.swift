import CRUDPluginKit

/// What expires in a collection and when, the first first, so that what has expired is found without a look at every
/// file.
///
/// A heap of at most ``capacity`` entries, in memory. Puts add theirs; what the files held before is read from all of
/// them, once and in slices, when it is first asked for. An entry is no more than a hint: its record may have been
/// written again or removed since, so whoever takes one looks at the file. Where there are more than fit, the later
/// half is dropped and ``horizon`` remembers when the first of these expires; at that time all files are read again.
final class ExpiryQueue {
    private static let capacity = 1 << 16
    /// How long one call reads files.
    private static let sliceTime = Duration.milliseconds(50)

    struct Entry {
        let expiresAt: Int64
        let id: [UInt8]
    }

    /// A binary heap: each entry expires no later than those at twice its index plus 1 and 2.
    private var heap: [Entry] = []
    /// From then on entries may be missing.
    private var horizon = Int64.max
    private var state = State.unread

    private enum State {
        case unread
        case reading(DirectoryNames)
        case read
    }

    // MARK: Entries

    var first: Entry? { heap.first }

    func push(_ id: [UInt8], expiresAt: Int64) {
        if expiresAt >= horizon { return }
        heap.append(Entry(expiresAt: expiresAt, id: id))
        var child = heap.count - 1
        while child > 0, heap[child].expiresAt < heap[(child - 1) / 2].expiresAt {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
        if heap.count > Self.capacity { dropLaterHalf() }
    }

    func removeFirst() {
        guard let last = heap.popLast(), !heap.isEmpty else { return }
        heap[0] = last
        var parent = 0
        while 2 * parent + 1 < heap.count {
            var child = 2 * parent + 1
            if child + 1 < heap.count, heap[child + 1].expiresAt < heap[child].expiresAt { child += 1 }
            guard heap[child].expiresAt < heap[parent].expiresAt else { return }
            heap.swapAt(child, parent)
            parent = child
        }
    }

    private func dropLaterHalf() {
        // What is sorted is a heap.
        heap.sort { $0.expiresAt < $1.expiresAt }
        horizon = heap[Self.capacity / 2].expiresAt
        heap.removeLast(heap.count - Self.capacity / 2)
    }

    // MARK: Files

    /// Reads on, if not all files have been read.
    func read(_ listing: Listing, _ heartbeat: inout Heartbeat, now: Int64) throws(StorageFailure) {
        // Not before what is known to have expired is dealt with: it may be thousands that expire at one time.
        if case .read = state, horizon <= now, (first?.expiresAt ?? .max) > now { state = .unread }
        if case .unread = state {
            horizon = .max
            state = .reading(try DirectoryNames(of: listing.directory))
        }
        guard case .reading(let names) = state else { return }
        let end = ContinuousClock.now + Self.sliceTime
        while ContinuousClock.now < end {
            heartbeat.advance()
            guard let entry = try names.next() else {
                state = .read
                return
            }
            guard let id = try listing.id(of: entry) else { continue }
            do throws(StorageFailure) {
                let file = try RecordFile.open(entry.text, in: listing.directory, listing.foreignFiles)
                if let expiresAt = try file?.expiresAt(), expiresAt != 0 { push(id, expiresAt: expiresAt) }
            } catch let error where error.status == .corrupt {
                listing.foreignFiles.report(error)
            }
        }
    }

    /// When the next record may expire; nil: none does. As long as files are being read there is something to do.
    func nextExpiry(now: Int64) -> Int64? {
        guard case .read = state else { return now }
        let next = min(heap.first?.expiresAt ?? .max, horizon)
        return next == .max ? nil : next
    }
}
