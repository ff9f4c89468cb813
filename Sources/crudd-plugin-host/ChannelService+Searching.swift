import CRUDModel
import CRUDPluginABI
import CRUDPluginCalls
import CRUDPluginHost
import CRUDThreads

/// The methods that search. The daemon schedules several searches.
extension ChannelService {
    /// How long one call executes a search.
    private static let sliceTime = Duration.milliseconds(20)

    func search(_ request: inout FrameReader) throws(PluginFailure) {
        var task = 0
        var asked = ChildSearch(
            .query, in: 0, query: [], indexes: [], maximumBytes: 0, maximumItemBytes: 0, timeout: .zero)
        try request.parameters { (request, key) throws(ProtocolViolation) in
            switch key {
            case "task": task = try request.count()
            case "collection": asked.collection = try request.count()
            case "kind":
                let kind = try request.text()
                guard let known = ChildSearch.Kind(rawValue: kind) else {
                    throw ProtocolViolation("an unknown kind of search, \(kind)")
                }
                asked.kind = known
            case "query": asked.query = Array(try request.json())
            case "indexes":
                try request.array { (request) throws(ProtocolViolation) in
                    asked.indexes.append(try request.count())
                }
            case "maximumBytes": asked.maximumBytes = try request.count()
            case "maximumItemBytes": asked.maximumItemBytes = try request.count()
            case "timeoutMilliseconds": asked.timeout = .milliseconds(try request.count())
            default: try request.skip()
            }
        }
        let collection = try collection(asked.collection)
        let search: Search
        do throws(CRUDError) {
            search = try Search(asked, in: collection)
        } catch {
            return reply(error)
        }
        // What another process has written since the snapshot of an earlier read is to be found.
        releaseSnapshot()
        try execute(search, as: task)
    }

    func continueSearch(_ request: inout FrameReader) throws(PluginFailure) {
        var task = 0
        var position: Int?
        try request.parameters { (request, key) throws(ProtocolViolation) in
            switch key {
            case "task": task = try request.count()
            case "rewind": position = try request.count()
            default: try request.skip()
            }
        }
        guard let search = storage.takeSearch(task) else {
            throw PluginFailure(status: CRUDD_INTERNAL, message: "there is no search \(task)")
        }
        if let position { search.rewind(to: position) }
        try execute(search, as: task)
    }

    func endSearch(_ request: inout FrameReader) throws(PluginFailure) {
        var task = 0
        try request.parameters { (request, key) throws(ProtocolViolation) in
            if "task" ~= key { task = try request.count() } else { try request.skip() }
        }
        storage.takeSearch(task)?.end()
    }

    /// Executes a search for a while, and keeps it if the daemon may continue it.
    private func execute(_ search: Search, as task: Int) throws(PluginFailure) {
        let reader = try reader()
        let deadline = MonotonicTime.now + Self.sliceTime
        defer { releaseSnapshot() }
        state.searchFailure = nil
        do throws(CRUDError) {
            repeat {
                try search.advance(with: reader)
                releaseSnapshot()
            } while !search.hasResult && !search.isWaiting && MonotonicTime.now < deadline
        } catch {
            // What the plugin says goes to the daemon's log, and what a client is told is the daemon's to say.
            if let failure = state.searchFailure { throw failure }
            return reply(error)
        }
        if search.isContinuable { storage.keep(search, as: task) }
        if search.isWaiting { reply.raw(#""waiting":true,"#) }
        reply(search.result, plan: search.plan, isDone: search.isDone)
    }

    private func reply(_ error: CRUDError) {
        reply.raw(#""done":true,"error":"#)
        reply.searchError(error)
    }

    private func reply(_ result: [UInt8], plan: [UInt8]?, isDone: Bool) {
        result.withUnsafeBytes { result in
            var rest = result[...]
            while rest.count > Self.partBytes {
                reply.raw(
                    #""result":"#, bytes: crudd_bytes(UnsafeRawBufferPointer(rebasing: rest.prefix(Self.partBytes))))
                rest = rest.dropFirst(Self.partBytes)
                sendPart()
            }
            reply.raw(isDone ? #""done":true,"result":"# : #""done":false,"result":"#)
            reply.bytes(UnsafeRawBufferPointer(rebasing: rest))
            guard let plan else { return }
            reply.raw(#","plan":"#)
            plan.withUnsafeBytes { reply.bytes($0) }
        }
    }

    /// Keeps the failure of a call that a search has made.
    func report(_ failure: PluginFailure) -> CRUDError {
        state.searchFailure = failure
        return CRUDError(.internalError, failure.message)
    }
}
