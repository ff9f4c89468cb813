import CRUDPluginABI
import Synchronization

/// A running child process with the channels to it.
///
/// A child that does not reply in time, breaks the protocol or closes its channel is killed and lost: from then on
/// every call fails without being sent, and the backend's writer starts another one. A child is also lost when it ends
/// while no call is in progress; its monitor notices.
package final class Child: Sendable {
    /// Different for each child of the daemon, from 1.
    package let identity = Child.count.add(1, ordering: .relaxed).newValue
    private static let count = Atomic<UInt32>(0)
    let command: ChildCommand
    private let process: ChildProcess
    let host: HostReference
    /// All calls may use the first; reads use the second, if there is one, so that they are made beside a commit.
    private let channels: [ChildChannel]
    /// For event loops.
    private let loopSockets: [LoopSocket]
    private let state = Mutex(State())
    private let served = Atomic(false)

    private struct State {
        var loss: String?
        var isClosing = false
        var greeting = Greeting()
        var monitor: ChildMonitor?
        /// How many of the loop sockets have been taken.
        var loopSocketsTaken = 0
        var lastCollection = 0
        var lastTask = 0
        /// What the pointers of those that have been opened stand for.
        var collections: [ChildCollection] = []
        /// Those that are open.
        var openCollections: [ChildCollection.Key: ChildCollection] = [:]
        /// Optional methods that the child has said it does not have.
        var unsupported: Set<OptionalMethod> = []
    }

    /// What a child says of itself.
    struct Greeting {
        var version = ""
        var capabilities: Plugin.Capabilities = []
        /// Whether it executes searches.
        var canSearch = false
        /// A JSON pointer to the option that says where its storage is.
        var storageOption: String?
        /// What an administrator uses where it makes no backups.
        var backupAdvice: String?
    }

    /// The methods that a child need not have.
    enum OptionalMethod {
        case idle, version
    }

    /// A plugin's channels that are not an event loop's.
    private static let commonChannels = 2
    /// How long a child may take to end.
    private static let shutdownTimeout = Duration.seconds(5)

    // MARK: Life

    /// Starts a child and greets it.
    ///
    /// - Parameters:
    ///   - host: lives until the child is closed.
    ///   - lost: called on a thread of the child's when it has ended by itself.
    /// - Throws: ``PluginFailure``; `unsupported` where its file must not be used or it speaks another version.
    convenience init(
        _ command: ChildCommand, host: HostReference, lost: @escaping @Sendable () -> Void
    ) throws(PluginFailure) {
        let file: PluginFile
        do throws(PluginLoadingError) {
            file = try command.file()
        } catch {
            throw PluginFailure(error)
        }
        try self.init(starting: command, file, host, lost)
        do throws(PluginFailure) {
            try greet()
            // The child has loaded or executed it by now.
            do throws(PluginLoadingError) { try file.checkUnchanged() } catch {
                throw PluginFailure(status: CRUDD_UNAVAILABLE, message: error.description)
            }
        } catch {
            close()
            throw error
        }
    }

    private init(
        starting command: ChildCommand, _ file: PluginFile, _ host: HostReference,
        _ lost: @escaping @Sendable () -> Void
    ) throws(PluginFailure) {
        var descriptors = ChildDescriptors()
        // What the child gets; our copies are closed when it has started.
        let theirs: [CInt?]
        switch command.program {
        case .plugin:
            var channels: [CInt] = []
            for _ in 0..<Self.commonChannels + command.loopChannels { channels.append(try descriptors.addSocket()) }
            let errors = try descriptors.addPipe()
            theirs = [nil, errors, errors] + channels
        case .executable:
            let channel = try descriptors.addSocket()
            theirs = [channel, channel, try descriptors.addPipe()]
        }
        process = try ChildProcess(
            command.arguments(for: file), environment: command.environment, descriptors: theirs)
        let ours = descriptors.take()
        self.command = command
        self.host = host
        channels = ours.channels.prefix(Self.commonChannels).map {
            ChildChannel(owning: $0, limits: command.limits, host: host)
        }
        loopSockets = ours.channels.dropFirst(Self.commonChannels).map { LoopSocket(owning: $0) }
        do throws(PluginFailure) {
            try startMonitor(errors: ours.errors, lost)
        } catch {
            process.kill()
            _ = process.waitForEnd(within: Self.shutdownTimeout)
            throw error
        }
    }

    private func startMonitor(errors: CInt, _ lost: @escaping @Sendable () -> Void) throws(PluginFailure) {
        let listening = ChildMonitor.Listening(
            process: process, errors: errors, channel: channels[0], host: host
        ) { [weak self] in
            self?.receiveNotification() ?? false
        } ended: { [weak self] ending in
            guard let self else { return }
            let isUnexpected = self.lose("child \(self.pid) \(ending)")
            // A process that it has left behind may hold them open, for which a call in progress would wait.
            self.shutDownChannels()
            if isUnexpected { lost() }
        }
        let monitor = try ChildMonitor(named: command.backend, listening)
        state.withLock { $0.monitor = monitor }
    }

    /// Has the child end, and waits for that: the end of its channels asks for it, and it is killed if it takes too
    /// long.
    package func close() {
        let monitor = state.withLock { state in
            state.isClosing = true
            return state.monitor.take()
        }
        shutDownChannels()
        if process.waitForEnd(within: min(Self.shutdownTimeout, command.limits.callTimeout)) == nil { process.kill() }
        monitor?.join()
    }

    private func shutDownChannels() {
        // The first last: with it the child's storage is closed.
        for socket in loopSockets { socket.shutDown() }
        for channel in channels.reversed() { channel.shutDown() }
    }

    // MARK: State

    package var pid: Int32 { process.pid }

    var greeting: Greeting { state.withLock { $0.greeting } }

    /// What it can do as it has been opened.
    package var capabilities: Plugin.Capabilities { greeting.capabilities }

    /// Whether it executes searches, see ``search(_:)``.
    package var canSearch: Bool { greeting.canSearch }

    /// Why the child must not be called any more; nil while it may.
    package var loss: String? { state.withLock { $0.loss } }

    /// What it is held to.
    package var limits: ChildCommand.Limits { command.limits }

    /// Whether it has replied to a call that somebody was waiting for.
    package var hasServed: Bool { served.load(ordering: .relaxed) }

    /// Notes what the child says of itself.
    func set(_ greeting: Greeting) {
        var greeting = greeting
        // No round trip is fast enough for an event loop, and one channel carries one call at a time.
        greeting.capabilities.subtract(channels.count > 1 ? .fastReads : [.fastReads, .concurrentReads])
        state.withLock { $0.greeting = greeting }
    }

    /// Notes what the child says it can do as it has been opened: never more than it said before.
    func narrow(to capabilities: Plugin.Capabilities) {
        state.withLock { $0.greeting.capabilities.formIntersection(capabilities) }
    }

    /// Whether the child has not said yet that it lacks a method.
    func supports(_ method: OptionalMethod) -> Bool { state.withLock { !$0.unsupported.contains(method) } }

    /// Notes that the child lacks a method.
    func lacks(_ method: OptionalMethod) {
        state.withLock { _ = $0.unsupported.insert(method) }
    }

    /// Makes a collection with a number of its own, to be opened.
    func makeCollection() -> ChildCollection {
        state.withLock { state in
            state.lastCollection += 1
            return ChildCollection(number: state.lastCollection)
        }
    }

    /// A number for a search.
    func makeTask() -> Int {
        state.withLock { state in
            state.lastTask += 1
            return state.lastTask
        }
    }

    /// Keeps a collection that has been opened as long as the child lives.
    ///
    /// - Returns: the same object whenever the collection is opened again, until it is dropped.
    func keep(_ collection: ChildCollection, as key: ChildCollection.Key) -> ChildCollection {
        state.withLock { state in
            if let known = state.openCollections[key] { return known }
            state.collections.append(collection)
            state.openCollections[key] = collection
            return collection
        }
    }

    /// Notes that a collection was dropped, in every format: its numbers are unused.
    func forgetCollections(named name: [UInt8]) {
        state.withLock { state in
            state.openCollections = state.openCollections.filter { $0.key.name != name }
        }
    }

    /// Notes that the child is lost; false if that is known, or intended.
    @discardableResult
    private func lose(_ reason: String) -> Bool {
        state.withLock { state in
            guard state.loss == nil else { return !state.isClosing }
            state.loss = reason
            return !state.isClosing
        }
    }

    /// Takes a channel for an event loop, which closes the descriptor; nil where none is left, or the child does not
    /// read beside other calls.
    func takeLoopSocket() -> CInt? {
        guard capabilities.contains(.concurrentReads) else { return nil }
        return state.withLock { state -> CInt? in
            guard state.loopSocketsTaken < loopSockets.count,
                let copy = loopSockets[state.loopSocketsTaken].duplicate()
            else { return nil }
            state.loopSocketsTaken += 1
            return copy
        }
    }

    // MARK: Calls

    /// Makes a call.
    ///
    /// - Throws: ``PluginFailure``, as the child replies; without a reply `unavailable`, or `outcome_unknown` for what
    ///   writes and has been sent.
    func call(
        _ method: StaticString, for purpose: ChildCall.Purpose, interrupt: ChildCall.Interrupt? = nil,
        _ parameters: (inout FrameWriter) -> Void = { _ in },
        _ result: ChildReply.ReadResult = ChildReply.skipResult
    ) throws(PluginFailure) {
        let (loss, readsApart) = state.withLock { ($0.loss, $0.greeting.capabilities.contains(.concurrentReads)) }
        if let loss { throw PluginFailure(status: CRUDD_UNAVAILABLE, message: loss) }
        let call = ChildCall(method: method, purpose: purpose, interrupt: interrupt)
        do throws(ChildCall.Failure) {
            var isMade = false
            // Only a child with further channels keeps the capability.
            if purpose == .reading, readsApart { isMade = try channels[1].callIfIdle(call, parameters, result) }
            if !isMade { try channels[0].call(call, parameters, result) }
        } catch {
            switch error {
            case .replied(let failure):
                if purpose != .maintenance { noteReply() }
                throw failure
            case .lost(let loss, let wasSent):
                throw PluginFailure(
                    status: wasSent && purpose == .writing ? CRUDD_OUTCOME_UNKNOWN : CRUDD_UNAVAILABLE,
                    message: end(after: loss, in: method))
            }
        }
        if purpose != .maintenance { noteReply() }
    }

    /// Notes that the child has replied to a call that somebody was waiting for.
    func noteReply() {
        served.store(true, ordering: .relaxed)
    }

    /// Passes a notification of the child to the host; returns whether there was one.
    private func receiveNotification() -> Bool {
        do throws(ChannelError) {
            return try channels[0].receiveNotification()
        } catch {
            // The end of the channel is noticed with the next call, or by the end of the process.
            if error != .closed { end(after: error, in: "a notification") }
            return false
        }
    }

    /// Kills a child that failed; returns what happened.
    @discardableResult
    func end(after error: ChannelError, in method: StaticString) -> String {
        let child = "child \(pid)"
        switch error {
        case .closed:
            // One that ends closes its channels shortly before it can be waited for.
            if let ending = process.waitForEnd(within: .milliseconds(200)) {
                lose("\(child) \(ending)")
            } else {
                lose("\(child) closed its channel")
            }
        case .timedOut:
            lose("\(child) did not reply to \(method) within \(command.limits.callTimeout) and was killed")
        case .violation(let reason):
            lose("\(child) violated the child protocol and was killed: \(method): \(reason)")
        case .system(let code):
            lose("the channel to \(child) failed with errno \(code), and it was killed: \(method)")
        }
        process.kill()
        return loss ?? ""
    }
}
