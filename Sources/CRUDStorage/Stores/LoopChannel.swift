import CRUDModel
import CRUDPluginCalls
import CRUDPluginHost
import CRUDQuery

/// An event loop's own channel to a backend's child: the loop reads records without a thread in between.
///
/// What an iteration wants to read goes out at its end, and the reply is one more input of a later iteration. A channel
/// lives as long as the child. A loop has two, so that the child need not wait for its next call while the loop takes
/// the reply to another apart.
package final class LoopChannel {
    /// How many a loop may have to one child.
    static let perLoop = ChildCommand.channelsPerLoop

    private let channel: ChildReadChannel
    private let child: Child
    /// A cycle until the channel is closed: it may outlive what the loop serves.
    private let store: ChannelStore
    private var transport: (any ChannelTransport)?
    /// What has been taken at one time: batches that are being executed, and the calls that are still to be made for
    /// them, the next one last.
    private struct Group {
        let number: Int
        let batches: [ReadBatch]
        var calls: [CoalescedRead]
    }

    /// Each in its turn makes one call, so that nobody's reads wait until many long ones of others are done. The first
    /// is the one whose call is outstanding.
    private var groups: [Group] = []
    /// The call whose reply is outstanding.
    private var current: CoalescedRead?
    /// When that reply is overdue, on the loop's clock.
    private var deadline = Duration.zero
    /// Whether the timer runs, and whether it has found the reply overdue in the iteration before.
    private var isTimed = false
    private var isOverdue = false

    /// - Returns: nil where the system has no room for another stream.
    init?(_ channel: ChildReadChannel, to child: Child, of store: ChannelStore, _ loop: any LoopContext) {
        self.channel = channel
        self.child = child
        self.store = store
        guard let transport = loop.openStream(channel.descriptor, for: self) else { return nil }
        self.transport = transport
    }

    var isOpen: Bool { transport?.isOpen == true }

    /// Whether batches are being executed.
    var isBusy: Bool { !groups.isEmpty }

    /// How many groups have been taken; they are numbered from 1.
    private(set) var groupCount = 0

    /// Whether any of so many groups is being executed.
    func isExecuting(anyOfFirst count: Int) -> Bool { groups.contains { $0.number <= count } }

    /// Whether a batch can go this way: it only reads records by id, in collections that the child has opened.
    func admits(_ batch: ReadBatch) -> Bool {
        isOpen && batch.isByID && batch.reads.allSatisfy { $0.collection.number(inChild: child.identity) != nil }
    }

    /// Executes what waits for a channel.
    func advance() {
        takeWaiting()
        sendNext()
        // Where nothing could be sent all the same.
        if completeIfDone() { store.wake() }
    }

    private func takeWaiting() {
        var batches: [ReadBatch] = []
        for batch in store.takeWaiting() {
            if !admits(batch) {
                store.submitToBackend(batch)
            } else if batch.claim() {
                batch.prepareResults()
                batches.append(batch)
            }
        }
        guard !batches.isEmpty else { return }
        groupCount += 1
        groups.append(
            Group(number: groupCount, batches: batches, calls: CoalescedRead.all(of: batches).reversed()))
    }

    private func sendNext() {
        guard let transport, transport.isOpen else { return }
        while current == nil, let index = groups.firstIndex(where: { !$0.calls.isEmpty }),
            let call = groups[index].calls.popLast()
        {
            groups.swapAt(0, index)
            guard let number = call.collection.number(inChild: child.identity) else {
                // The child was lost, and the end of the channel has not been noticed yet.
                _ = call.fail(store.unavailable)
                continue
            }
            current = call
            channel.request(
                call.ids.span, in: number, withItems: call.withItems, maximumBytes: call.maximumBytes,
                now: CallContext.now
            ) { transport.send($0) }
            restartTimer()
        }
    }

    /// Hands back the groups whose calls have all returned.
    ///
    /// - Returns: whether there were any. Outside of ``received(_:)`` this iteration may have handed over already what
    ///   it has gathered; what these replies have started then needs another one.
    private func completeIfDone() -> Bool {
        let first = current == nil ? 0 : 1
        let done = groups[first...].filter(\.calls.isEmpty)
        guard !done.isEmpty else { return false }
        groups = groups[..<first] + groups[first...].filter { !$0.calls.isEmpty }
        for group in done { for batch in group.batches { store.complete(batch) } }
        return true
    }

    // MARK: The transport

    /// Takes what the child has sent.
    ///
    /// - Returns: how many bytes have been taken.
    package func received(_ bytes: Span<UInt8>) -> Int {
        var consumed = 0
        while consumed < bytes.count {
            let reception = channel.receive(bytes.extracting(consumed...)) { [transport] in
                transport?.send($0)
            } _: { [current] index, record in
                current?.receive(index: index, FoundRecord(record)) ?? false
            }
            switch reception {
            case .incomplete(let totalBytes):
                transport?.expect(totalBytes: totalBytes)
                return consumed
            case .part(let byteCount, let restartsTimeout):
                consumed += byteCount
                if restartsTimeout { restartTimer() }
            case .complete(let byteCount, let failure):
                consumed += byteCount
                completeCall(failure)
            case .violation:
                transport?.close()
                return bytes.count
            }
        }
        _ = completeIfDone()
        advance()
        return consumed
    }

    private func completeCall(_ failure: PluginFailure?) {
        guard let call = current.take() else { return }
        if let failure {
            groups[0].calls += call.fail(store.report(failure)).reversed()
        } else {
            call.succeed()
        }
        // Its next call comes when the others have made one.
        takeWaiting()
        if groups.count > 1, !groups[0].calls.isEmpty { groups.append(groups.removeFirst()) }
    }

    /// The transport has been closed.
    package func closed() {
        transport = nil
        store.remove(self)
        for call in groups.flatMap(\.calls) + [current].compactMap(\.self) { _ = call.fail(store.unavailable) }
        for index in groups.indices { groups[index].calls.removeAll() }
        current = nil
        if completeIfDone() { store.wake() }
    }

    // MARK: Time-outs

    private func restartTimer() {
        deadline = store.now + channel.callTimeout
        isOverdue = false
        guard !isTimed else { return }
        isTimed = true
        transport?.schedule(after: channel.callTimeout)
    }

    /// The timer is not set for each call: it checks whether the reply that is outstanding now is overdue.
    package func timerFired() {
        isTimed = false
        guard current != nil else { return }
        if deadline > store.now {
            isTimed = true
            transport?.schedule(after: deadline - store.now)
        } else if !isOverdue {
            // The loop may be the one that is late: what has come is read after the timers of an iteration.
            isOverdue = true
            isTimed = true
            transport?.schedule(after: .zero)
        } else {
            channel.timedOut()
            // Not left to the end of a process that may take its time to die.
            transport?.close()
        }
    }
}
