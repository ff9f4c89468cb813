import CLinux
import CRUDPluginABI
import Synchronization

#if canImport(Glibc)
import Glibc
#endif

/// A running child process with the channels to it.
///
/// A child that does not answer in time, answers nonsense or closes its channel is killed and lost: from then on every
/// call fails without being sent, and the backend's writer starts another one. A child is also lost when it ends while
/// nobody is asking it anything; its monitor notices.
final class Child: Sendable {
    let process: ChildProcess
    /// Different for each child of the daemon, from 1.
    let identity = Child.count.add(1, ordering: .relaxed).newValue
    private static let count = Atomic<UInt32>(0)
    private let command: ChildCommand
    private let host: HostReference
    /// All calls may go over the first; reads take the second, if there is one, so that they go on beside a commit.
    private let channels: [ChildChannel]
    /// For event loops, which look records up by themselves.
    private let lookupSockets: [LookupSocket]
    private let state = Mutex(State())
    private let served = Atomic(false)
    private let wantsIdle = Atomic(true)

    private struct State {
        var loss: String?
        var isClosing = false
        var greeting = Greeting()
        var monitor: ChildMonitor?
        /// How many of the lookup sockets have been given away.
        var takenLookupSockets = 0
        var collectionsMade = 0
        /// What the pointers of those that have been opened stand for.
        var collections: [ChildCollection] = []
    }

    /// What a child says of itself.
    struct Greeting {
        var name = ""
        var version = ""
        var capabilities: Plugin.Capabilities = []
        /// Whether items of JSON collections are to come as strings.
        var wantsTexts = false
    }

    /// The version of the child protocol.
    private static let protocolVersion = 1
    /// A plugin's channels that are not an event loop's.
    private static let commonChannels = 2
    /// How long a child that is to end may take.
    private static let farewell = Duration.seconds(5)

    // MARK: Life

    /// Starts a child and greets it.
    ///
    /// - Parameters:
    ///   - host: lives until the child is closed.
    ///   - lost: called on a thread of the child's when it has ended by itself.
    /// - Throws: ``PluginFailure``; `unsupported` where its file is not to be used or it speaks another version.
    convenience init(
        _ command: ChildCommand, host: HostReference, lost: @escaping @Sendable () -> Void
    ) throws(PluginFailure) {
        let file: PluginFile
        do throws(PluginFault) {
            file = try command.file()
        } catch {
            throw PluginFailure(status: CRUDD_UNSUPPORTED, message: error.description, pointer: "")
        }
        try self.init(starting: command, file, host, lost)
        do throws(PluginFailure) {
            try greet()
        } catch {
            close()
            throw error
        }
    }

    private init(
        starting command: ChildCommand, _ file: PluginFile, _ host: HostReference,
        _ lost: @escaping @Sendable () -> Void
    ) throws(PluginFailure) {
        var pipes = Pipes()
        // What the child gets; our copies go when it has started.
        let descriptors: [CInt?]
        switch command.program {
        case .plugin:
            var channels: [CInt] = []
            for _ in 0..<Self.commonChannels + command.lookupChannels { channels.append(try pipes.addSocket()) }
            let errors = try pipes.addPipe()
            descriptors = [nil, errors, errors] + channels
        case .executable:
            let channel = try pipes.addSocket()
            descriptors = [channel, channel, try pipes.addPipe()]
        }
        process = try ChildProcess(
            command.arguments(for: file), environment: command.environment, descriptors: descriptors)
        let ours = pipes.take()
        self.command = command
        self.host = host
        channels = ours.channels.prefix(Self.commonChannels).map { ChildChannel(owning: $0, limits: command.limits) }
        lookupSockets = ours.channels.dropFirst(Self.commonChannels).map { LookupSocket(owning: $0) }
        do throws(PluginFailure) {
            let monitor = try ChildMonitor(process, name: command.backend, errors: ours.errors, host: host) {
                [weak self] ending in
                guard let self else { return }
                if self.lose("child \(self.process.pid) \(ending)") { lost() }
            }
            state.withLock { $0.monitor = monitor }
        } catch {
            process.kill()
            _ = process.waitForEnd(within: Self.farewell)
            throw error
        }
    }

    /// Has the child end, and waits for that: it is asked by the end of its channels, and killed if it overstays.
    func close() {
        let monitor = state.withLock { state in
            state.isClosing = true
            return state.monitor.take()
        }
        // The first last: with it the child's storage is closed.
        for socket in lookupSockets { socket.shutDown() }
        for channel in channels.reversed() { channel.shutDown() }
        if process.waitForEnd(within: min(Self.farewell, command.limits.callTimeout)) == nil { process.kill() }
        monitor?.join()
    }

    // MARK: State

    var greeting: Greeting { state.withLock { $0.greeting } }

    var capabilities: Plugin.Capabilities { greeting.capabilities }

    /// Why the child is not to be spoken to any more; nil while it is.
    var loss: String? { state.withLock { $0.loss } }

    /// What it is held to.
    var limits: ChildCommand.Limits { command.limits }

    /// Whether it has answered a call that somebody was waiting for.
    var hasServed: Bool { served.load(ordering: .relaxed) }

    /// Notes what the child says it can do as it has been opened: never more than it said before.
    func narrow(to capabilities: Plugin.Capabilities) {
        state.withLock { $0.greeting.capabilities.formIntersection(capabilities) }
    }

    /// Whether the child has not said yet that it has nothing to do in a quiet moment.
    var takesIdle: Bool {
        get { wantsIdle.load(ordering: .relaxed) }
        set { wantsIdle.store(newValue, ordering: .relaxed) }
    }

    /// Makes a collection with a number of its own, to be opened.
    func makeCollection(_ specification: crudd_collection_spec) -> ChildCollection {
        state.withLock { state in
            state.collectionsMade += 1
            return ChildCollection(
                specification, number: state.collectionsMade, wantsTexts: state.greeting.wantsTexts)
        }
    }

    /// Keeps a collection that has been opened as long as the child lives.
    func keep(_ collection: ChildCollection) {
        state.withLock { $0.collections.append(collection) }
    }

    /// Notes that the child is lost; false if that is known, or meant.
    @discardableResult
    private func lose(_ reason: String) -> Bool {
        state.withLock { state in
            guard state.loss == nil else { return !state.isClosing }
            state.loss = reason
            return !state.isClosing
        }
    }

    /// Gives away a channel to look records up, a socket of its taker's own to close; nil where none is left, or the child
    /// does not read beside other calls.
    func takeLookupSocket() -> CInt? {
        guard capabilities.contains(.readsConcurrently) else { return nil }
        return state.withLock { state -> CInt? in
            // A copy, so that the child can be told of the end when the taker has closed its own.
            guard state.takenLookupSockets < lookupSockets.count,
                let copy = lookupSockets[state.takenLookupSockets].duplicate()
            else { return nil }
            state.takenLookupSockets += 1
            return copy
        }
    }

    // MARK: Calls

    /// What a call is for.
    enum Purpose {
        /// Nobody waits for it.
        case upkeep
        /// To make ready for what somebody waits for.
        case preparation
        /// Somebody waits for it, and it may go beside others.
        case reading
        /// Somebody waits for it, and it matters whether it was carried out.
        case writing
    }

    /// Makes a call.
    ///
    /// - Throws: ``PluginFailure``, as the child answers; without an answer `unavailable`, or `outcome_unknown` for what
    ///   writes and has been sent.
    func call(
        _ method: StaticString, for purpose: Purpose, interrupt: Interrupt? = nil,
        _ parameters: FrameWriter.WriteParameters = { _ in },
        _ result: ChildReply.ReadResult = { reader throws(FrameFault) in
            try reader.skip()
            return true
        }
    ) throws(PluginFailure) {
        let (loss, readsApart) = state.withLock { ($0.loss, $0.greeting.capabilities.contains(.readsConcurrently)) }
        if let loss { throw PluginFailure(unavailable: loss) }
        do throws(ChildChannel.Fault) {
            var isMade = false
            // Only a child with further channels keeps the capability.
            if purpose == .reading, readsApart {
                isMade = try channels[1].callIfIdle(method, interrupt: interrupt, parameters, result)
            }
            if !isMade { try channels[0].call(method, interrupt: interrupt, parameters, result) }
        } catch {
            switch error {
            case .answered(let failure):
                if purpose != .upkeep { hasAnswered() }
                throw failure
            case .lost(let loss, let wasSent):
                throw PluginFailure(
                    status: wasSent && purpose == .writing ? CRUDD_OUTCOME_UNKNOWN : CRUDD_UNAVAILABLE,
                    message: end(after: loss, in: method), pointer: "")
            }
        }
        if purpose != .upkeep { hasAnswered() }
    }

    /// Notes that it has answered a call that somebody was waiting for.
    func hasAnswered() {
        served.store(true, ordering: .relaxed)
    }

    /// Ends a child that failed; says what happened.
    @discardableResult
    func end(after loss: ChildChannel.Loss, in method: StaticString) -> String {
        let child = "child \(process.pid)"
        switch loss {
        case .ended:
            // One that dies closes its channels shortly before it can be waited for.
            if let ending = process.waitForEnd(within: .milliseconds(200)) {
                lose("\(child) \(ending)")
            } else {
                lose("\(child) closed its channel")
            }
        case .overdue: lose("\(child) has not answered \(method) within \(command.limits.callTimeout) and was killed")
        case .garbage(let reason): lose("\(child) talks nonsense and was killed: \(method): \(reason)")
        }
        process.kill()
        return self.loss ?? ""
    }

    private func greet() throws(PluginFailure) {
        var greeting = Greeting()
        var version = 0
        try call("hello", for: .upkeep) { request in
            request.raw(#""protocol":"#)
            request.integer(Self.protocolVersion)
            request.raw(#","backend":"#)
            request.string(command.backend)
            request.raw(#","limits":{"frameBytes":"#)
            request.integer(command.limits.frameBytes)
            request.raw("}")
        } _: { reader throws(FrameFault) in
            try reader.object { (reader, key) throws(FrameFault) in
                if reader.isKey(key, "protocol") {
                    version = try reader.count()
                } else if reader.isKey(key, "name") {
                    greeting.name = try reader.text()
                } else if reader.isKey(key, "version") {
                    greeting.version = try reader.text()
                } else if reader.isKey(key, "capabilities") {
                    greeting.capabilities = try reader.capabilities()
                } else if reader.isKey(key, "items") {
                    greeting.wantsTexts = try reader.text() == "text"
                } else {
                    try reader.skip()
                }
            }
            return true
        }
        guard version == Self.protocolVersion else {
            throw PluginFailure(
                status: CRUDD_UNSUPPORTED,
                message: "the child speaks version \(version) of the child protocol; this crudd speaks version "
                    + "\(Self.protocolVersion)", pointer: "")
        }
        // No round trip is fast enough for an event loop, and one channel carries one call at a time.
        greeting.capabilities.subtract(channels.count > 1 ? .readsFast : [.readsFast, .readsConcurrently])
        state.withLock { $0.greeting = greeting }
    }
}

extension FrameReader {
    /// Takes a list of capabilities by name; one that is not known is passed over.
    mutating func capabilities() throws(FrameFault) -> Plugin.Capabilities {
        var capabilities: Plugin.Capabilities = []
        try array { (reader) throws(FrameFault) in capabilities.insert(named: try reader.text()) }
        return capabilities
    }
}

/// Pipes and socket pairs on their way to a child: both ends until it has started, ours afterwards.
private struct Pipes: ~Copyable {
    private var channels: [CInt] = []
    private var errors: CInt = -1
    private var theirs: [CInt] = []

    /// Makes a channel; answers the child's end.
    mutating func addSocket() throws(PluginFailure) -> CInt {
        var ends: [CInt] = [0, 0]
        let type = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw Self.failure() }
        channels.append(ends[0])
        theirs.append(ends[1])
        return ends[1]
    }

    /// Makes the pipe for errors; answers the child's end.
    mutating func addPipe() throws(PluginFailure) -> CInt {
        var ends: [CInt] = [0, 0]
        guard clinux_pipe(&ends) == 0 else { throw Self.failure() }
        errors = ends[0]
        theirs.append(ends[1])
        return ends[1]
    }

    /// Gives up our ends and closes the child's.
    mutating func take() -> (channels: [CInt], errors: CInt) {
        defer {
            channels = []
            errors = -1
        }
        return (channels, errors)
    }

    deinit {
        for descriptor in channels + theirs + [errors] where descriptor >= 0 { close(descriptor) }
    }

    private static func failure() -> PluginFailure {
        PluginFailure(unavailable: "no channel to a child process: \(String(cString: strerror(errno)))")
    }
}
