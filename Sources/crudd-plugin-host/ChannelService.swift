import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import CRUDThreads

/// Serves one channel, on one thread: a request, its reply, and so on until the daemon closes it.
final class ChannelService {
    let storage: Storage
    let daemon: DaemonReference
    private let sender: ChannelSender
    // Not checked for exclusive access at run time, which a profile of reads shows: one thread uses it, and nothing
    // that is called during an access comes back to the same part of it.
    @exclusivity(unchecked) private var socket: FramedSocket
    @exclusivity(unchecked) var reply = FrameWriter()
    @exclusivity(unchecked) var state = State()
    /// What every call of the plugin is told.
    private(set) var context = CallContext()
    let failure = FailureReport()
    private var request = FrameReader()

    struct State {
        /// The number of the request that is being executed.
        var number = 0
        /// What is done with the records that the plugin emits.
        var emission = Emission()
        /// Kept for their memory.
        var ids: [crudd_bytes] = []
        /// The plugin's reader, made when something is first read, and what holds its snapshot.
        var pluginReader: OpaquePointer?
        var reader: SnapshotReader?
        /// Until when its snapshot may be held; nil: none is held.
        var snapshotEnd: Duration?
        /// The plugin's version when the snapshot was last used.
        var snapshotVersion: UInt64 = 0
        /// Whether waiting for a request ends when a snapshot has been held for long enough.
        var isReceivingLimited = false
        /// The failure of the last call that a search has made.
        var searchFailure: PluginFailure?
    }

    /// A frame of a reply that is as long is sent, and the reply continues in another.
    static let partBytes = 1 << 20

    /// - Parameter descriptor: closed with the object.
    init(_ descriptor: CInt, _ sender: ChannelSender, _ storage: Storage, _ daemon: DaemonReference) {
        // The daemon is trusted with the size of what it sends.
        socket = FramedSocket(owning: descriptor, maximumFrameBytes: Int(UInt32.max))
        self.sender = sender
        self.storage = storage
        self.daemon = daemon
        context = CallContext(
            interrupted: { context in
                guard let context else { return 0 }
                // The context is the service that makes the call.
                return Unmanaged<ChannelService>.fromOpaque(context).takeUnretainedValue().isInterrupted ? 1 : 0
            }, context: Unmanaged.passUnretained(self).toOpaque())
    }

    var table: UnsafePointer<crudd_plugin> { storage.table }

    func run() {
        sender.attachThread()
        do throws(ChannelError) {
            while true {
                let frame = try receive()
                if sender.execute({ execute(frame) }) { try sender.send(&reply) }
            }
        } catch {
            if error != .closed { fail("the channel to the daemon failed: \(error)") }
        }
        releaseSnapshot()
        if let reader = state.pluginReader { table.pointee.close_reader(reader) }
    }

    /// Whether the daemon has sent something during a call: that the rest of the reply is of no use.
    var isInterrupted: Bool { socket.isReadable(within: .zero) }

    // MARK: Requests

    /// Executes a request; its reply, or the last frame of it, is ready to be sent then. False for what has no reply.
    private func execute(_ frame: UnsafeRawBufferPointer) -> Bool {
        do throws(ProtocolViolation) {
            var number: Int?
            var method: FrameString?
            var isExecuted = false
            try request.begin(frame)
            try request.object { (request, key) throws(ProtocolViolation) in
                switch key {
                case "id": number = try request.count()
                case "method": method = try request.string()
                case "params":
                    guard let number, let method else { return try request.skip() }
                    try execute(method, number, &request)
                    isExecuted = true
                default: try request.skip()
                }
            }
            // An interrupt that has come too late.
            if number == nil { return false }
            guard isExecuted else { throw ProtocolViolation("the daemon writes id, method and params, in this order") }
        } catch {
            fail("the daemon's request cannot be read: \(error)")
        }
        return true
    }

    private func execute(
        _ method: FrameString, _ number: Int, _ request: inout FrameReader
    ) throws(ProtocolViolation) {
        let parameters = request.position
        state.number = number
        reply.beginReply(to: number)
        do throws(PluginFailure) {
            try dispatch(method, &request)
            reply.endReply()
        } catch {
            reply.failure(error, to: number)
            request.move(to: parameters)
            try request.skip()
        }
    }

    private func dispatch(_ method: FrameString, _ request: inout FrameReader) throws(PluginFailure) {
        switch method {
        case "read": try read(&request)
        case "write": try write(&request)
        case "scan": try scan(&request)
        case "search": try search(&request)
        case "searchContinue": try continueSearch(&request)
        case "searchEnd": try endSearch(&request)
        case "count": try count(&request)
        case "readHistory": try readHistory(&request)
        case "version": try version(&request)
        case "removeExpired": try removeExpired(&request)
        case "trimHistory": try trimHistory(&request)
        case "takeHistory": try takeHistory(&request)
        case "idle": try idle(&request)
        case "beginBackup": try beginBackup(&request)
        case "stepBackup": try stepBackup(&request)
        case "endBackup": try endBackup(&request)
        case "hello": try hello(&request)
        case "checkOptions": try checkOptions(&request)
        case "open": try open(&request)
        case "openCollection": try openCollection(&request)
        case "dropCollection": try dropCollection(&request)
        case "listCollections": try listCollections(&request)
        default: throw PluginFailure(status: CRUDD_UNSUPPORTED, message: "there is no method \(method.text)")
        }
    }

    /// Sends what there is of a result; the reply continues in another frame.
    func sendPart() {
        reply.endReply(hasMore: true)
        do throws(ChannelError) {
            try sender.send(&reply)
        } catch {
            fail("the daemon does not receive: \(error)")
        }
        reply.beginReply(to: state.number)
    }

    // MARK: The plugin

    /// The storage.
    func backend() throws(PluginFailure) -> OpaquePointer {
        guard let opened = storage.opened else {
            throw PluginFailure(status: CRUDD_INTERNAL, message: "the storage is not open")
        }
        return opened.storage
    }

    /// The collection that a request means by a number.
    func collection(_ number: Int) throws(PluginFailure) -> ServedCollection {
        guard let collection = storage.collection(number) else {
            throw PluginFailure(status: CRUDD_INTERNAL, message: "the collection is not open")
        }
        return collection
    }

    /// Reads the members of `params` of a method on one collection.
    ///
    /// - Parameter member: takes the value of each member that only this method has, or passes over it.
    /// - Returns: the collection, and the time of the call.
    func parameters(
        of request: inout FrameReader, _ member: (inout FrameReader, FrameString) throws(ProtocolViolation) -> Void
    ) throws(PluginFailure) -> (collection: OpaquePointer?, now: Int64) {
        var number = 0
        var now: Int64 = 0
        try request.parameters { (request, key) throws(ProtocolViolation) in
            switch key {
            case "collection": number = try request.count()
            case "now": now = Int64(try request.count())
            default: try member(&request, key)
            }
        }
        return (try collection(number).handle, now)
    }

    // MARK: The snapshot

    /// The channel's own reader, for one call.
    ///
    /// As in the daemon's event loops, its snapshot is kept from one read to the next, for no longer than
    /// ``SnapshotReader/maximumSnapshotAge``.
    func reader() throws(PluginFailure) -> SnapshotReader {
        if let reader = state.reader {
            guard table.pointee.end_snapshot != nil else { return reader }
            // A daemon that caches has noticed what somebody else has written; it must not be shown an older state.
            let version = reader.dataVersion()
            let isForeign = version != state.snapshotVersion
            state.snapshotVersion = version
            if isForeign || state.snapshotEnd.map({ MonotonicTime.now >= $0 }) == true { releaseSnapshot() }
            if state.snapshotEnd == nil { state.snapshotEnd = MonotonicTime.now + SnapshotReader.maximumSnapshotAge }
            return reader
        }
        var opened: OpaquePointer?
        try failure.check(table.pointee.open_reader(try backend(), &opened, failure.pointer))
        guard let opened else { throw PluginFailure(status: CRUDD_INTERNAL, message: "the plugin made no reader") }
        let reader = SnapshotReader(PluginHandle(pointer: opened), of: table, clock: storage.clock) {
            [unowned self] failure, _ in report(failure)
        }
        (state.pluginReader, state.reader) = (opened, reader)
        return try self.reader()
    }

    /// Releases the snapshot, which keeps a database from reusing its log.
    func releaseSnapshot() {
        state.reader?.releaseSnapshot()
        state.snapshotEnd = nil
    }

    /// Waits for a request, and releases the snapshot if none comes.
    private func receive() throws(ChannelError) -> UnsafeRawBufferPointer {
        if state.snapshotEnd != nil, !state.isReceivingLimited {
            socket.setReceivingTimeout(SnapshotReader.maximumSnapshotAge)
            state.isReceivingLimited = true
        }
        do throws(ChannelError) {
            return try socket.receive(until: nil)
        } catch {
            guard error == .timedOut else { throw error }
        }
        releaseSnapshot()
        socket.setReceivingTimeout(nil)
        state.isReceivingLimited = false
        return try socket.receive(until: nil)
    }
}

extension FrameReader {
    /// Reads the members of `params`: has `member` take the value of each, or pass over it.
    mutating func parameters(
        _ member: (inout FrameReader, FrameString) throws(ProtocolViolation) -> Void
    ) throws(PluginFailure) {
        do throws(ProtocolViolation) {
            try object(member)
        } catch {
            throw PluginFailure(status: CRUDD_INTERNAL, message: "the request is invalid: \(error)")
        }
    }
}
