import CLinux
import Glibc

/// One connection with its requests in flight.
///
/// All replies that one read returns are parsed, a new request is appended to the output for each, and one call sends
/// them all. The buffers are raw memory: the cost of this loop reduces the throughput of the server on the same
/// machine.
final class LoadConnection {
    /// One request in flight. Its tag has the number of the slot (three digits) and counts its requests (six digits),
    /// so that a late, duplicate or wrong reply is noticed in any order of replies.
    private struct Slot {
        var tag: UInt64
        var record: UInt64 = 0
        var sentAt: UInt64 = 0
        var isBusy = false
    }

    static let slotStride: UInt64 = 1_000_000
    static let maximumDepth = 1000

    let socket: Int32
    private let format: ReplyFormat
    private let template: RequestTemplate
    private let value: RequestTemplate?
    private var slots: [Slot]
    private var replies = 0
    private(set) var inFlight = 0

    private let input: UnsafeMutableRawBufferPointer
    private var inputEnd = 0
    private let output: UnsafeMutableRawBufferPointer
    private var outputStart = 0
    private var outputEnd = 0
    private let expected: UnsafeMutableRawBufferPointer

    init(_ workload: Workload) throws {
        socket = try UnixSocket.connect(workload.socket)
        format = ReplyFormat(workload)
        template = RequestTemplate(workload)
        let checksValues = [.read, .query].contains(workload.operation) || workload.language == .echo
        value =
            checksValues
            ? RequestTemplate(RequestTemplate.value(bytes: workload.valueBytes), framed: false) : nil
        slots = (0..<workload.depth).map {
            Slot(tag: RequestTemplate.base + UInt64($0) * Self.slotStride)
        }
        // A query returns ten records.
        input = .allocate(byteCount: max(256 << 10, 20 * workload.valueBytes), alignment: 16)
        output = .allocate(byteCount: workload.depth * template.bytes.count, alignment: 16)
        expected = .allocate(byteCount: workload.valueBytes, alignment: 16)
    }

    deinit {
        close(socket)
        input.deallocate()
        output.deallocate()
        expected.deallocate()
    }

    /// Sends a request from every slot. All of them must be free.
    func begin(_ progress: inout LoadProgress) {
        for slot in slots.indices where progress.takeRequest() { put(slot, &progress) }
    }

    /// Reads what the socket has, and sends a new request for each reply.
    func receive(_ progress: inout LoadProgress) throws {
        let count = recv(socket, input.baseAddress?.advanced(by: inputEnd), input.count - inputEnd, 0)
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        guard count >= 0 else { throw BenchError.system("recv") }
        guard count > 0 else { throw BenchError("the server closed the connection") }
        inputEnd += count
        progress.now = MonotonicClock.now()

        var start = 0
        while let reply = try format.parse(UnsafeRawBufferPointer(rebasing: input[start..<inputEnd])) {
            let slot = try slot(of: reply)
            progress.record(sentAt: slots[slot].sentAt, failure: reply.failure)
            if progress.isSample {
                try checkValue(UnsafeRawBufferPointer(rebasing: input[start..<start + reply.length]), slot)
            }
            slots[slot].isBusy = false
            inFlight -= 1
            replies += 1
            start += reply.length
            if !progress.isPaced, progress.takeRequest() { put(slot, &progress) }
        }
        if start > 0 {
            UnsafeMutableRawBufferPointer(rebasing: input[..<(inputEnd - start)])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: input[start..<inputEnd]))
            inputEnd -= start
        }
        guard inputEnd < input.count else { throw BenchError("a reply of more than \(input.count) bytes") }
    }

    /// Sends the output. Returns false if the socket is full, so that the remaining bytes must wait until it is
    /// writable.
    func flush() throws -> Bool {
        while outputStart < outputEnd {
            let count = send(
                socket, output.baseAddress?.advanced(by: outputStart), outputEnd - outputStart,
                Int32(MSG_NOSIGNAL))
            if count >= 0 {
                outputStart += count
            } else if errno == EAGAIN {
                return false
            } else if errno != EINTR {
                throw BenchError.system("send")
            }
        }
        (outputStart, outputEnd) = (0, 0)
        return true
    }

    private func put(_ index: Int, _ progress: inout LoadProgress) {
        if outputEnd + template.bytes.count > output.count {
            // Only unsent bytes are kept, at most a request for each slot.
            UnsafeMutableRawBufferPointer(rebasing: output[..<(outputEnd - outputStart)])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: output[outputStart..<outputEnd]))
            (outputStart, outputEnd) = (0, outputEnd - outputStart)
        }
        let previous = slots[index].tag
        let tag = previous % Self.slotStride == Self.slotStride - 1 ? previous + 1 - Self.slotStride : previous + 1
        slots[index] = Slot(tag: tag, record: progress.records.advance(), sentAt: progress.now, isBusy: true)
        template.write(
            to: UnsafeMutableRawBufferPointer(rebasing: output[outputEnd...]), tag: tag, number: slots[index].record)
        outputEnd += template.bytes.count
        inFlight += 1
    }

    private func slot(of reply: ReplyFormat.Reply) throws -> Int {
        guard let tag = reply.tag else {
            guard inFlight > 0 else { throw BenchError("a reply without a request") }
            return replies % slots.count
        }
        let index = Int((tag &- RequestTemplate.base) / Self.slotStride)
        guard index < slots.count, slots[index].isBusy, slots[index].tag == tag else {
            throw BenchError("a reply to request \(tag), which is not in flight")
        }
        return index
    }

    /// Checks that a reply contains the value of the slot's record, byte for byte.
    private func checkValue(_ reply: UnsafeRawBufferPointer, _ slot: Int) throws {
        guard let value else { return }
        value.write(to: expected, tag: 0, number: slots[slot].record)
        guard UnsafeRawBufferPointer(expected).isWithin(reply)
        else {
            throw BenchError(
                "record \(slots[slot].record) has another value: "
                    + String(decoding: reply.dropFirst(4).prefix(400), as: UTF8.self))
        }
    }
}
