package import CRUDModel
import CRUDPluginABI

/// A search that is executed next to the plugin, in slices of some milliseconds each, so that several searches are
/// executed round robin.
package struct ChildSearch: Sendable {
    /// What the search comes to.
    package enum Kind: String, Sendable {
        case query, count, matching
    }

    /// By its number in the child, see ``Child/number(of:)``.
    package var collection: Int
    package var kind: Kind
    /// A JSON object, which the executor understands.
    package var query: [UInt8]
    /// The indexes that may serve.
    package var indexes: [Int]
    /// The most bytes of the result.
    package var maximumBytes: Int
    /// The most bytes of one item's text.
    package var maximumItemBytes: Int
    /// How long the search may take.
    package var timeout: Duration

    package init(
        _ kind: Kind, in collection: Int, query: [UInt8], indexes: [Int], maximumBytes: Int, maximumItemBytes: Int,
        timeout: Duration
    ) {
        self.kind = kind
        self.collection = collection
        self.query = query
        self.indexes = indexes
        self.maximumBytes = maximumBytes
        self.maximumItemBytes = maximumItemBytes
        self.timeout = timeout
    }

    /// What a slice of a search came to.
    package struct Slice: Sendable {
        /// By which number the search is continued.
        package var task: Int
        /// Whether the search has come to its end. The child forgets it then, unless it is of ``Kind/matching``.
        package var isDone = false
        /// Whether it waits for a thread, so that it need not be continued at once.
        package var isWaiting = false
        /// What the executor has made of it so far; empty where there is nothing yet.
        package var result: [UInt8] = []
        /// How a query has found its records, when it is done: a JSON object, which the executor understands.
        package var plan: [UInt8] = []
        /// Why the search has failed; the child forgets it then.
        package var error: CRUDError?
    }
}

extension Child {
    /// Starts a search and executes its first slice.
    ///
    /// - Throws: ``PluginFailure`` where the child could not be asked.
    package func search(_ search: ChildSearch) throws(PluginFailure) -> ChildSearch.Slice {
        try slice(makeTask(), "search") { request in
            request.raw(#","collection":"#, search.collection)
            request.raw(#","kind":"#, search.kind.rawValue)
            request.raw(#","query":"#)
            request.raw(search.query)
            request.raw(#","indexes":"#)
            request.array(search.indexes) { $0.integer($1) }
            request.raw(#","maximumBytes":"#, search.maximumBytes)
            request.raw(#","maximumItemBytes":"#, search.maximumItemBytes)
            request.raw(#","timeoutMilliseconds":"#, search.timeout.pollMilliseconds)
        }
    }

    /// Executes the next slice of a search.
    ///
    /// - Parameter record: of ``ChildSearch/Kind/matching``: the position in the last result of the record from which
    ///   on the search is to be resumed; nil: behind all of them.
    /// - Throws: ``PluginFailure`` where the child could not be asked.
    package func continueSearch(_ task: Int, from record: Int? = nil) throws(PluginFailure) -> ChildSearch.Slice {
        try slice(task, "searchContinue") { request in
            guard let record else { return }
            request.raw(#","rewind":"#, record)
        }
    }

    /// Ends a search that the child keeps.
    package func endSearch(_ task: Int) {
        // A child that cannot be asked has ended it already.
        try? call("searchEnd", for: .maintenance) { request in
            request.raw(#""task":"#, task)
        }
    }

    private func slice(
        _ task: Int, _ method: StaticString, _ parameters: (inout FrameWriter) -> Void
    ) throws(PluginFailure) -> ChildSearch.Slice {
        var slice = ChildSearch.Slice(task: task)
        try call(method, for: .reading) { request in
            request.raw(#""task":"#, task)
            parameters(&request)
        } _: { reader throws(ProtocolViolation) in
            try reader.object { (reader, key) throws(ProtocolViolation) in
                switch key {
                case "done": slice.isDone = try reader.bool()
                case "waiting": slice.isWaiting = try reader.bool()
                case "result": slice.result += try reader.bytes()
                case "plan": slice.plan = Array(try reader.bytes())
                case "error": slice.error = try reader.searchError()
                default: try reader.skip()
                }
            }
            guard slice.result.count <= self.limits.frameBytes else {
                throw ProtocolViolation("a result of more than \(self.limits.frameBytes) bytes")
            }
            return true
        }
        return slice
    }
}

/// Why a search has failed: `{"code":-32007,"message":"…","limit":"…","maximum":1}`.
extension FrameWriter {
    package mutating func searchError(_ error: CRUDError) {
        raw(#"{"code":"#, error.code.rawValue)
        raw(#","message":"#, error.message)
        if let limit = error.details.limit {
            raw(#","limit":"#, limit)
        }
        if let maximum = error.details.maximum {
            raw(#","maximum":"#, maximum)
        }
        raw("}")
    }
}

extension FrameReader {
    fileprivate mutating func searchError() throws(ProtocolViolation) -> CRUDError {
        var error = CRUDError(.internalError, "")
        try object { (reader, key) throws(ProtocolViolation) in
            switch key {
            case "code": error.code = CRUDError.Code(rawValue: try reader.signedInteger())
            case "message": error.message = try reader.text()
            case "limit": error.details.limit = try reader.text()
            case "maximum": error.details.maximum = try reader.count()
            default: try reader.skip()
            }
        }
        return error
    }
}
