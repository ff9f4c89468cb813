import CRUDEventLoop
import CRUDPluginHost

/// An event loop's line to a backend's child: what a turn wants to look up goes out at its end, and the reply is one more
/// thing that a turn begins with.
///
/// It lives as long as the child, and keeps itself alive as long as it is open.
final class ChildLink: StreamHandler {
    private let channel: LookupChannel
    private let links: ChildLinks
    // The loop keeps its streams, and so their handlers, no longer than it lives itself.
    private unowned let loop: ServiceLoop
    /// Nil before there is one, and when it has been closed.
    private var stream: Stream?
    /// How many times something that was looked up together has been answered.
    private var answered = 0
    /// When the call under way has taken long enough, on the loop's clock.
    private var deadline = Duration.zero
    /// Whether the call under way was found to be overdue in the turn before.
    private var isOverdue = false
    private lazy var timer = Timer(on: loop.eventLoop) { [weak self] in self?.lookAtClock() }

    /// Nil where the system has no room for another stream.
    init?(_ channel: LookupChannel, of links: ChildLinks, loop: ServiceLoop) {
        self.channel = channel
        self.links = links
        self.loop = loop
        do throws(SystemCallError) {
            stream = try Stream(channel.descriptor, on: loop.eventLoop, handler: self)
        } catch {
            channel.close()
            return nil
        }
    }

    /// Whether it can be used.
    var isOpen: Bool { stream?.isOpen == true }

    /// Whether something is being looked up.
    var isBusy: Bool { channel.isBusy }

    /// What is being looked up; nil if nothing is.
    var lookup: Lookup? { isBusy ? Lookup(link: self, number: answered) : nil }

    /// Something that a link looks up.
    struct Lookup {
        fileprivate let link: ChildLink
        fileprivate let number: Int

        /// Whether it has been answered.
        var isOver: Bool { link.answered != number || !link.isBusy }
    }

    /// Whether it can look up what a batch asks for.
    func admits(_ batch: ReadBatch) -> Bool { isOpen && channel.admits(batch) }

    /// Takes up what waits, if nothing is under way.
    func goOn() {
        if !channel.isBusy { channel.takeUp(links.takeWaiting()) }
        sendNext()
        // Where nothing could be sent all the same.
        answerAndWake(channel.takeAnswered())
    }

    private func sendNext() {
        guard let stream, stream.isOpen, let request = channel.nextRequest() else { return }
        stream.output.append(request.span)
        deadline = loop.now + channel.callTimeout
        isOverdue = false
        if !timer.isScheduled { timer.schedule(after: channel.callTimeout) }
    }

    /// The timer is not set anew for each call: it looks whether the one that is under way now has been for too long.
    private func lookAtClock() {
        guard channel.isBusy else { return }
        guard deadline <= loop.now else { return timer.schedule(after: deadline - loop.now) }
        guard isOverdue else {
            // The loop may be the one that is late: what has come is read after the timers of a turn.
            isOverdue = true
            return timer.schedule(after: .zero)
        }
        channel.giveUp()
        // Not left to the end of a process that may take its time to die.
        stream?.close()
    }

    private func answer(_ batches: [ReadBatch]) {
        if !batches.isEmpty { answered += 1 }
        for batch in batches { loop.complete(batch) }
    }

    /// The same where this turn may have handed over already what it has gathered: what goes on because of these answers is
    /// the next one's.
    private func answerAndWake(_ batches: [ReadBatch]) {
        answer(batches)
        if !batches.isEmpty { loop.eventLoop.waker.wake() }
    }

    // MARK: The stream

    func received(_ bytes: Span<UInt8>, from stream: Stream) -> Int {
        var consumed = 0
        while consumed < bytes.count {
            switch channel.receive(bytes.extracting(consumed...)) {
            case .incomplete(let size):
                stream.expects(totalBytes: size)
                return consumed
            case .frame(let size): consumed += size
            case .frameAnsweredWith(let size, let interrupt):
                consumed += size
                stream.output.append(interrupt.span)
            case .nonsense:
                stream.close()
                return bytes.count
            }
        }
        answer(channel.takeAnswered())
        goOn()
        return consumed
    }

    func reachedEnd(of stream: Stream) { stream.close() }

    func outputDrained(from stream: Stream) {}

    func closed(_ stream: Stream) {
        self.stream = nil
        timer.cancel()
        links.remove(self)
        answerAndWake(channel.end())
    }
}
