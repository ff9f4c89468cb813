import CRUDModel
import CRUDPluginABI

#if canImport(Glibc)
import Glibc
#endif

/// An event loop's own channel to a child: the loop looks records up without a thread in between.
///
/// A loop has two, so that the child need not wait for its next call while the loop takes the reply to another apart. The
/// loop moves the bytes; here stands what they mean. A channel serves one child; when that is lost, or something is wrong
/// with it, the channel is of no more use.
package final class LookupChannel {
    /// How many a loop may have to one child.
    package static let perLoop = 2

    /// A stream socket, the loop's to close.
    package let descriptor: CInt
    private let backend: Backend
    private let child: Child

    // None is checked for exclusive access at run time, which a profile of reads shows: one thread uses them, and nothing
    // that is called during an access comes back to them.

    /// What is being carried out.
    @exclusivity(unchecked) private var underWay: [ReadBatch] = []
    /// The calls that are still to be made for it, the next one last.
    @exclusivity(unchecked) private var lookups: [Lookup] = []
    /// The call that has been made.
    @exclusivity(unchecked) private var current: Lookup?
    /// Whether anybody wants what is still to come of its reply.
    @exclusivity(unchecked) private var isWanted = true
    @exclusivity(unchecked) private var number = 0
    @exclusivity(unchecked) private var request = FrameWriter()
    @exclusivity(unchecked) private var reader = FrameReader()

    init?(to child: Child, of backend: Backend) {
        guard let descriptor = child.takeLookupSocket() else { return nil }
        self.descriptor = descriptor
        self.backend = backend
        self.child = child
    }

    /// How long a call may take.
    package var callTimeout: Duration { child.limits.callTimeout }

    /// Whether something is being carried out.
    package var isBusy: Bool { !underWay.isEmpty }

    /// Whether a batch can go this way: it only looks records up, in collections that the child has opened.
    package func admits(_ batch: ReadBatch) -> Bool {
        batch.isLookup && batch.reads.allSatisfy { $0.collection.number(inChild: child.identity) != nil }
    }

    /// Takes batches up together, to be called when nothing is under way. What cannot go this way any more goes the usual
    /// one.
    package func takeUp(_ batches: [ReadBatch]) {
        for batch in batches {
            if !admits(batch) {
                backend.submit(batch)
            } else if batch.claim() {
                batch.prepareResults()
                underWay.append(batch)
            }
        }
        lookups = Lookup.all(of: underWay).reversed()
    }

    /// What is to be sent now; nil if a call is under way, or nothing is left to be asked.
    package func nextRequest() -> [UInt8]? {
        guard current == nil else { return nil }
        while let lookup = lookups.popLast() {
            guard let collection = lookup.collection.number(inChild: child.identity) else {
                // The child has been lost, and the end of the channel not been noticed yet.
                _ = lookup.fail(backend.error(status: CRUDD_UNAVAILABLE))
                continue
            }
            current = lookup
            isWanted = true
            number += 1
            request.request("read", number: number) { frame in
                frame.lookup(lookup.ids, in: collection, withItems: lookup.withItems)
            }
            return request.bytes
        }
        return nil
    }

    /// The batches that have been carried out.
    package func takeAnswered() -> [ReadBatch] {
        guard current == nil, lookups.isEmpty else { return [] }
        defer { underWay.removeAll() }
        return underWay
    }

    // MARK: Replies

    /// What came of bytes that have been received.
    package enum Reception {
        /// They are the beginning of a frame, which is of so many bytes.
        case incomplete(Int)
        /// They begin with a frame of so many bytes, which has been taken.
        case frame(Int)
        /// The same, and the child is to be told this.
        case frameAnsweredWith(Int, [UInt8])
        /// They are nonsense: nothing more is to be asked here.
        case nonsense
    }

    /// Takes a frame of a reply.
    package func receive(_ bytes: Span<UInt8>) -> Reception {
        // Not even the beginning of a frame is waited for: nothing would come of it.
        guard let lookup = current else { return nonsense("a reply to nothing") }
        guard bytes.count >= FrameWriter.headerBytes else { return .incomplete(FrameWriter.headerBytes) }
        let length = (0..<FrameWriter.headerBytes).reduce(0) { $0 << 8 | Int(bytes[$1]) }
        guard length <= child.limits.frameBytes else { return nonsense("a frame of \(length) bytes") }
        let size = FrameWriter.headerBytes + length
        guard bytes.count >= size else { return .incomplete(size) }
        let reply: ChildReply
        do throws(FrameFault) {
            reply = try read(bytes.extracting(FrameWriter.headerBytes..<size), for: lookup)
        } catch {
            return nonsense(error.description)
        }
        let isNewlyUnwanted = isWanted && !reply.isWanted
        isWanted = isWanted && reply.isWanted
        if reply.hasMore {
            guard isNewlyUnwanted else { return .frame(size) }
            request.interrupt()
            return .frameAnsweredWith(size, request.bytes)
        }
        child.hasAnswered()
        current = nil
        if let failure = reply.failure {
            lookups += lookup.fail(backend.report(failure, during: "read"))
        } else {
            lookup.succeed()
        }
        return .frame(size)
    }

    private func read(_ frame: Span<UInt8>, for lookup: Lookup) throws(FrameFault) -> ChildReply {
        // The frame is read while the span is borrowed, and not kept.
        try frame.withUnsafeBufferPointer { frame throws(FrameFault) in
            reader.begin(frame)
            return try ChildReply(from: &reader, number: number, isWanted: isWanted) { reader throws(FrameFault) in
                try reader.lookup(of: lookup.ids.count) { index, record in
                    lookup.receive(index: index, item: record.item, revision: record.revision)
                }
            }
        }
    }

    private func nonsense(_ reason: String) -> Reception {
        child.end(after: .garbage(reason), in: "read")
        return .nonsense
    }

    // MARK: The end

    /// Closes the descriptor, of which nothing has been made.
    package func close() { _ = Glibc.close(descriptor) }

    /// The call under way has taken too long.
    package func giveUp() {
        child.end(after: .overdue, in: "read")
    }

    /// The channel has come to its end.
    ///
    /// - Returns: the batches that have failed with it.
    package func end() -> [ReadBatch] {
        let error = backend.error(status: CRUDD_UNAVAILABLE)
        for lookup in lookups + [current].compactMap(\.self) { _ = lookup.fail(error) }
        lookups.removeAll()
        current = nil
        return takeAnswered()
    }
}

/// The daemon's end of a ``LookupChannel``, as the child's owner keeps it: the event loop has a copy.
final class LookupSocket: Sendable {
    private let descriptor: CInt

    /// - Parameter descriptor: closed with the object.
    init(owning descriptor: CInt) {
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Tells both ends that nothing more will come.
    func shutDown() { FramedSocket.shutDown(descriptor) }

    /// A descriptor of its own to close; nil where the system gives none.
    func duplicate() -> CInt? {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        return copy < 0 ? nil : copy
    }
}
