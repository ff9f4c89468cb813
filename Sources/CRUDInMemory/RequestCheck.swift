import CRUDClient
import CRUDJSON
import CRUDModel

/// What the daemon refuses before it does anything, with the limits that it has unless it is configured otherwise.
enum RequestCheck {
    /// That the task may make a call.
    ///
    /// - Throws: `timed_out` if its deadline has passed.
    static func task() throws {
        try Task.checkCancellation()
        guard let deadline = CRUDClient.deadline, deadline <= .now else { return }
        throw CRUDError(.timedOut, "the deadline has passed", cause: DeadlineExceeded())
    }

    /// Whether the task's calls are over: they are asked that while they take long.
    ///
    /// - Parameter deadline: the task's, looked up once.
    static func isOver(deadline: ContinuousClock.Instant?) -> Bool {
        Task.isCancelled || deadline.map { $0 <= .now } ?? false
    }

    /// Has a search continue until it is complete.
    ///
    /// - Parameter advance: executes a slice; is given a function that tells whether to stop.
    /// - Throws: as ``task()``, if the search has been stopped.
    static func complete(_ advance: (_ isOver: @escaping @Sendable () -> Bool) throws -> Bool) throws {
        let deadline = CRUDClient.deadline
        var isComplete = false
        while !isComplete {
            isComplete = try advance { isOver(deadline: deadline) }
            // A search that has been stopped may have come to a wrong end.
            try task()
        }
    }

    static func collection(_ name: String) throws(CRUDError) {
        try text(name, maximum: Naming.maximumCollectionNameBytes, "collection")
    }

    static func id(_ id: String, _ member: String = "id") throws(CRUDError) {
        try text(id, maximum: Naming.maximumIDBytes, member)
    }

    /// The elements of a batch or of `ids`.
    static func count(_ count: Int, _ member: String) throws(CRUDError) {
        let maximum = DefaultLimits.batch
        guard count > maximum else { return }
        throw exceeded("batch", maximum, "`\(member)` has more than \(maximum) elements")
    }

    /// The `limit` of a query.
    static func limit(_ limit: Int) throws(CRUDError) {
        let maximum = DefaultLimits.queryLimit
        guard limit >= 1 else {
            throw .invalid("limit", "must be at least 1")
        }
        guard limit > maximum else { return }
        throw exceeded("query_limit", maximum, "`limit` is over \(maximum)")
    }

    static func item(_ item: EncodedItem) throws(CRUDError) {
        let maximumBytes = DefaultLimits.itemBytes
        guard item.bytes.count <= maximumBytes else {
            throw exceeded("item_bytes", maximumBytes, "the item is longer than \(maximumBytes) bytes")
        }
        let maximumDepth = DefaultLimits.jsonDepth
        var scanner = JSONScanner()
        do throws(JSONSyntaxError) {
            guard try scanner.document(item.bytes.span).depth > maximumDepth else { return }
        } catch {
            throw CRUDError(.parseError, "the item is not valid JSON")
        }
        throw exceeded("json_depth", maximumDepth, "the item nests deeper than \(maximumDepth)")
    }

    static func expiry(_ expiry: Expiry?) throws(CRUDError) {
        if case .at(let instant) = expiry, !(1...DefaultLimits.latestExpiry ~= Expiry.milliseconds(instant)) {
            throw .invalid("expiresAt", "must be an instant after 1970-01-01 and before the year 10000")
        }
        guard case .after(let duration) = expiry else { return }
        let maximum = DefaultLimits.ttlSeconds * 1000
        guard let milliseconds = duration.wholeMilliseconds, (1...maximum).contains(milliseconds) else {
            throw .invalid("ttl", "must be a number of seconds above 0, at most 100 years")
        }
    }

    static func wait(_ wait: Duration) throws(CRUDError) {
        guard wait < .zero || wait > .seconds(DefaultLimits.waitSeconds) else { return }
        throw .invalid("wait", "must be from 0 to \(DefaultLimits.waitSeconds) seconds")
    }

    static func operation(_ operation: RecordOperation, in collection: String) throws(CRUDError) {
        try Self.collection(operation.collection ?? collection)
        try id(operation.id)
        switch operation.action {
        case .create(let item), .update(let item, _), .upsert(let item, _), .patch(let item, _, _):
            try Self.item(item)
            try expiry(operation.expiry)
        case .apply(let operations, let patch, _, _):
            if let patch { try Self.item(patch) }
            try expiry(operation.expiry)
            _ = try fieldPatch(try operations.texts())
        case .touch: try expiry(operation.expiry)
        case .delete, .check: break
        }
    }

    /// Field operations, ready to be applied.
    static func fieldPatch(_ operations: FieldOperationTexts) throws(CRUDError) -> FieldPatch {
        try FieldPatch(operations.parts, of: operations.text.span, maximumDepth: DefaultLimits.jsonDepth)
    }

    static func operations(_ operations: [RecordOperation], in collection: String) throws(CRUDError) {
        try count(operations.count, "operations")
        for (index, operation) in operations.enumerated() {
            do throws(CRUDError) {
                try Self.operation(operation, in: collection)
            } catch {
                throw error.at(index)
            }
        }
    }

    private static func text(_ text: String, maximum: Int, _ member: String) throws(CRUDError) {
        let bytes = Array(text.utf8)
        guard let violation = Naming.violation(bytes.span, maximum: maximum) else { return }
        throw .invalid(member, violation)
    }

    private static func exceeded(_ name: String, _ maximum: Int, _ message: String) -> CRUDError {
        CRUDError(.limitExceeded, message, details: CRUDError.Details(limit: name, maximum: maximum))
    }
}
