import CRUDModel
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
    /// The batches that are being executed, and the calls that are still to be made for them, the next one last.
    private var batches: [ReadBatch] = []
    private var calls: [CoalescedRead] = []
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
    var isBusy: Bool { !batches.isEmpty }

    /// How often batches have been executed.
    private(set) var executions = 0

    /// Whether a batch can go this way: it only reads records by id, in collections that the child has opened.
    func admits(_ batch: ReadBatch) -> Bool {
        isOpen && batch.isByID && batch.reads.allSatisfy { $0.collection.number(inChild: child.identity) != nil }
    }

    /// Executes what waits for a channel, if nothing is being executed.
    func advance() {
        if !isBusy {
            for batch in store.takeWaiting() {
                if !admits(batch) {
                    store.submitToBackend(batch)
                } else if batch.claim() {
                    batch.prepareResults()
                    batches.append(batch)
                }
            }
            calls = CoalescedRead.all(of: batches).reversed()
        }
        sendNext()
        // Where nothing could be sent all the same.
        if completeIfDone() { store.wake() }
    }

    private func sendNext() {
        guard let transport, transport.isOpen else { return }
        while current == nil, let call = calls.popLast() {
            guard let number = call.collection.number(inChild: child.identity) else {
                // The child was lost, and the end of the channel has not been noticed yet.
                _ = call.fail(store.unavailable)
                continue
            }
            current = call
            channel.request(call.ids.span, in: number, withItems: call.withItems, now: CallContext.now) {
                transport.send($0)
            }
            restartTimer()
        }
    }

    /// Hands back the batches whose calls have all returned.
    ///
    /// - Returns: whether there were any. Outside of ``received(_:)`` this iteration may have handed over already what
    ///   it has gathered; what these replies have started then needs another one.
    private func completeIfDone() -> Bool {
        guard current == nil, calls.isEmpty, isBusy else { return false }
        let done = batches
        batches.removeAll()
        executions += 1
        for batch in done { store.complete(batch) }
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
            calls += call.fail(store.report(failure))
        } else {
            call.succeed()
        }
    }

    /// The transport has been closed.
    package func closed() {
        transport = nil
        store.remove(self)
        for call in calls + [current].compactMap(\.self) { _ = call.fail(store.unavailable) }
        calls.removeAll()
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
