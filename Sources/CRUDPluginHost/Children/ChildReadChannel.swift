package import CRUDPluginABI

/// An event loop's own channel to a child: what the loop sends and receives to read records without a thread in
/// between.
///
/// The loop moves the bytes; here stands what they mean. One request is open at a time. A channel serves one child;
/// when that is lost, or has violated the protocol, the channel is of no more use. Used by one thread.
package final class ChildReadChannel {
    /// A stream socket, the loop's to close.
    package let descriptor: CInt
    private let child: Child
    // Not checked for exclusive access at run time, which a profile of reads shows: one thread uses it, and nothing
    // that is called during an access comes back to it.
    @exclusivity(unchecked) private var state = State()

    private struct State: ~Copyable {
        var request = FrameWriter()
        var reader = FrameReader()
        var number = 0
        /// How many ids were asked for; nil while no request is open.
        var idCount: Int?
        var isWanted = true
    }

    init?(to child: Child) {
        guard let descriptor = child.takeLoopSocket() else { return nil }
        self.descriptor = descriptor
        self.child = child
    }

    /// How long a call may take.
    package var callTimeout: Duration { child.limits.callTimeout }

    /// Makes a request, to be sent when no other one is open.
    ///
    /// - Parameters:
    ///   - collection: its number in the child, see ``Child/number(of:)``.
    ///   - maximumBytes: how many bytes of items and revisions there is room for; nil: that is not told.
    ///   - now: milliseconds since 1970-01-01 UTC.
    ///   - send: sends the bytes, which are gone when it returns.
    package func request(
        _ ids: Span<crudd_bytes>, in collection: Int, withItems: Bool, maximumBytes: Int? = nil, now: Int64,
        _ send: (Span<UInt8>) -> Void
    ) {
        state.number += 1
        state.idCount = ids.count
        state.isWanted = true
        let number = state.number
        ids.withUnsafeBufferPointer { ids in
            state.request.request("read", number: number) { frame in
                frame.read(ids, in: collection, withItems: withItems, maximumBytes: maximumBytes, now: now)
            }
        }
        state.request.withBytes(send)
    }

    /// What came of bytes that have been received.
    package enum Reception {
        /// They are the beginning of a frame, which has so many bytes.
        case incomplete(totalBytes: Int)
        /// They begin with a frame of so many bytes, which has been taken; the reply continues. Its time-out begins
        /// again unless nobody wants the rest.
        case part(byteCount: Int, restartsTimeout: Bool)
        /// The reply has ended, with a failure unless it has a result.
        case complete(byteCount: Int, PluginFailure?)
        /// They violate the protocol: the child is ended, and the channel is to be closed.
        case violation
    }

    /// Takes a frame.
    ///
    /// - Parameters:
    ///   - send: sends bytes to the child, which are gone when it returns.
    ///   - take: takes the record of the id at an index, whose bytes are gone when it returns; returns whether another
    ///     one is wanted.
    package func receive(
        _ bytes: Span<UInt8>, send: (Span<UInt8>) -> Void, _ take: (Int, inout crudd_record) -> Bool
    ) -> Reception {
        // The frame is read while the span is borrowed, and not kept.
        bytes.withUnsafeBytes { bytes in
            guard bytes.count >= FrameWriter.lengthBytes else {
                return .incomplete(totalBytes: FrameWriter.lengthBytes)
            }
            let length = FrameLength.read(bytes)
            let size = FrameWriter.lengthBytes + length
            do throws(ProtocolViolation) {
                guard length <= child.limits.frameBytes else {
                    throw .tooLong(length, maximum: child.limits.frameBytes)
                }
                guard bytes.count >= size else { return .incomplete(totalBytes: size) }
                let frame = UnsafeRawBufferPointer(rebasing: bytes[FrameWriter.lengthBytes..<size])
                return try receive(frame, size, send, take)
            } catch {
                child.end(after: ChannelError(error), in: "read")
                return .violation
            }
        }
    }

    private func receive(
        _ frame: UnsafeRawBufferPointer, _ size: Int, _ send: (Span<UInt8>) -> Void,
        _ take: (Int, inout crudd_record) -> Bool
    ) throws(ProtocolViolation) -> Reception {
        try state.reader.begin(frame)
        let count = state.idCount
        let message = try state.reader.message(
            replyTo: count == nil ? nil : state.number, isWanted: state.isWanted
        ) { reader throws(ProtocolViolation) in try reader.recordsRead(of: count ?? 0, take) }
        switch message {
        case .progress(let done, let total): child.host.progress(done: done, total: total)
        case .state(let isUp, let reason): child.host.state(isUp: isUp, reason: reason)
        case .changed(let name): child.host.changed(name)
        case .reply(let reply) where reply.hasMore:
            if state.isWanted, !reply.isWanted {
                state.isWanted = false
                state.request.interrupt()
                state.request.withBytes(send)
            }
        case .reply(let reply):
            state.idCount = nil
            child.noteReply()
            let isInterrupted = !state.isWanted && reply.failure?.status == CRUDD_INTERRUPTED
            return .complete(byteCount: size, isInterrupted ? nil : reply.failure)
        }
        return .part(byteCount: size, restartsTimeout: state.isWanted)
    }

    /// Ends the child, which has not replied in time.
    package func timedOut() {
        child.end(after: .timedOut, in: "read")
    }
}

extension Child {
    /// A channel for an event loop; nil where none is left, or the child does not read beside other calls.
    package func makeReadChannel() -> ChildReadChannel? { ChildReadChannel(to: self) }
}
