import CRUDPluginABI
import CRUDTestSupport
import Logging

@testable import CRUDPluginHost

/// A plugin in a child of the test's own, which is closed with the object.
final class TestChild: Sendable {
    let directory: TemporaryDirectory
    let log: Inbox<String>
    let states: Inbox<String>
    /// One value once the child is lost.
    let losses: Inbox<String>
    let child: Child
    let opened: OpenedPlugin
    private let host: PluginHostCallbacks

    /// What runs in the child.
    enum Program {
        /// The example in Python.
        case store
        /// The same, which misbehaves where it is asked to.
        case unruly
        /// The same, with a process in a session of its own, which keeps what it inherits and floods standard error;
        /// `grandchild` holds its process id.
        case grandchild
        /// The adapter that keeps records in memory, in `crudd-plugin-host`.
        case memory
    }

    /// - Parameter options: further options.
    init(
        _ program: Program = .store, callTimeout: Duration = .seconds(30), frameBytes: Int = 4 << 20,
        options: String = "",
        in directory: TemporaryDirectory? = nil
    ) throws {
        let directory = try directory ?? TemporaryDirectory()
        self.directory = directory
        let (log, states, losses) = (try Inbox<String>(), try Inbox<String>(), try Inbox<String>())
        (self.log, self.states, self.losses) = (log, states, losses)
        let logger = Logger(label: "test") { _ in LogInbox(lines: log) }
        host = PluginHostCallbacks(backend: "kid", logger: logger) { isUp, reason in
            states.put("\(isUp ? "up" : "down"): \(reason)")
        } changed: { name in
            states.put("changed: \(String(decoding: name, as: UTF8.self))")
        }
        let command = ChildCommand(
            backend: "kid", program: try Self.program(program, in: directory), sha256: nil,
            limits: ChildCommand.Limits(callTimeout: callTimeout, frameBytes: frameBytes), loopCount: 1,
            launcher: try BuildProducts.path(of: "crudd-plugin-host"))
        let json = Array(
            (program == .memory ? "{}" : #"{"path":"\#(directory.path)/store.db"\#(options)}"#).utf8)
        let (plugin, check) = try Plugin.inChild(command, options: json, logger: logger)
        if let doubt = check.doubt { throw Failure(doubt.message) }
        if let failure = check.failures.first { throw failure }
        opened = try plugin.open(options: json, host: host.pointer) { losses.put("lost") }
        guard let child = opened.child else { throw Failure("a plugin in a child without a child") }
        self.child = child
    }

    deinit { ChildTable.table.pointee.close(opened.storage) }

    private static func program(
        _ program: Program, in directory: TemporaryDirectory
    ) throws -> ChildCommand.Program {
        if program == .memory {
            try Files.copy(
                try BuildProducts.path(of: "libmemory.so"), to: "\(directory.path)/memory.so", mode: 0o755)
            return .plugin("memory", directories: [directory.path])
        }
        let sources = BuildProducts.packageDirectory
        let store = "\(directory.path)/store.py"
        let unruly = "\(directory.path)/unruly.py"
        try Files.copy("\(sources)/Plugins/Examples/store.py", to: store, mode: 0o755)
        try Files.copy("\(sources)/Tests/Plugins/unruly.py", to: unruly, mode: 0o755)
        switch program {
        case .grandchild:
            let script = """
                exec 3<&0
                setsid yes flood >&2 &
                echo $! >'\(directory.path)/grandchild'
                exec /usr/bin/python3 '\(unruly)' '\(store)'
                """
            return .executable(["/bin/sh", "-c", script])
        case .unruly: return .executable(["/usr/bin/python3", unruly, store])
        case .store, .memory: return .executable(["/usr/bin/python3", store])
        }
    }

    // MARK: Calls, through the function table

    /// Makes a call; throws its failure.
    private func call(
        _ call: (UnsafePointer<crudd_plugin>, UnsafeMutablePointer<crudd_failure>) -> crudd_status
    ) throws(PluginFailure) {
        let failure = FailureReport()
        try failure.check(call(ChildTable.table, failure.pointer))
    }

    func open(_ name: String = "clients", flags: Int = CRUDD_OPEN_CREATE) throws -> OpaquePointer {
        let raw = RawBytes()
        defer { withExtendedLifetime(raw) {} }
        var specification = crudd_collection_spec.sized()
        specification.name = raw(name)
        specification.format = raw("json")
        specification.flags = UInt32(flags)
        var collection: OpaquePointer?
        let context = CallContext()
        try call {
            $0.pointee.open_collection(opened.storage, context.begin(), &specification, &collection, $1)
        }
        guard let collection else { throw Failure("no collection") }
        return collection
    }

    /// A change of one record.
    struct Change {
        var id: String
        var item: String?
        var revision = "r"
        var precondition = CRUDD_IF_ANY
        var expected = ""
        var expiresAt: Int64 = 0
        var sequence: UInt64 = 0
    }

    /// Writes a batch; returns status, `replaced` and revision of each outcome.
    func write(
        _ changes: [Change], in collection: OpaquePointer, isAtomic: Bool = false, now: Int64 = CallContext.now
    ) throws -> [String] {
        let raw = RawBytes()
        defer { withExtendedLifetime(raw) {} }
        let mutations = changes.map { change in
            var mutation = crudd_mutation.sized()
            mutation.kind = UInt32(change.item == nil ? CRUDD_REMOVE : CRUDD_PUT)
            mutation.precondition = UInt32(change.precondition)
            mutation.collection = collection
            mutation.expected = raw(change.expected)
            var record = crudd_record.sized()
            record.id = raw(change.id)
            record.item = raw(change.item ?? "")
            record.revision = raw(change.revision)
            record.expires_at = change.expiresAt
            record.sequence = change.sequence
            mutation.record = raw.copy(record)
            return mutation
        }
        var outcomes = [crudd_outcome](repeating: .sized(), count: changes.count)
        let context = CallContext()
        try call { table, failure in
            mutations.withUnsafeBufferPointer { mutations in
                outcomes.withUnsafeMutableBufferPointer { outcomes in
                    var request = crudd_write.sized()
                    request.flags = isAtomic ? UInt32(CRUDD_WRITE_ATOMIC) : 0
                    request.mutations = mutations.baseAddress
                    request.mutation_size = MemoryLayout<crudd_mutation>.stride
                    request.outcomes = outcomes.baseAddress
                    request.outcome_size = MemoryLayout<crudd_outcome>.stride
                    request.count = mutations.count
                    return table.pointee.write(opened.storage, context.begin(now: now), &request, failure)
                }
            }
        }
        return outcomes.map { outcome in
            let revision = withUnsafeBytes(of: outcome.revision) { revision in
                String(decoding: revision.prefix(Int(outcome.revision_size)), as: UTF8.self)
            }
            return "\(StatusName.name(of: Int(outcome.status)))\(outcome.replaced == 1 ? " replaced" : "")\(revision)"
        }
    }

    /// Where emitted records go.
    private final class Sink {
        var records: [String] = []
        var maximum: Int

        init(maximum: Int) {
            self.maximum = maximum
        }

        static let emit: crudd_emit = { context, index, record in
            // The context is the sink of the call below.
            let sink = Unmanaged<Sink>.fromOpaque(context!).takeUnretainedValue()
            let record = crudd_record.read(record!)
            sink.records.append("\(index) \(record.id.text)=\(record.item.text)@\(record.revision.text)")
            return sink.records.count < sink.maximum ? 0 : 1
        }
    }

    /// Reads records: `INDEX ID=ITEM@REVISION` for each.
    func read(
        _ ids: [String], in collection: OpaquePointer, now: Int64 = CallContext.now, deadline: Int64 = 0,
        maximum: Int = .max, isInterrupted: () -> Bool = { false }
    ) throws -> [String] {
        let raw = RawBytes()
        let sink = Sink(maximum: maximum)
        defer { withExtendedLifetime((raw, sink)) {} }
        var request = crudd_read.sized()
        request.collection = collection
        request.ids = raw.array(ids)
        request.count = ids.count
        request.emit = Sink.emit
        request.context = Unmanaged.passUnretained(sink).toOpaque()
        let context = CallContext()
        try call { table, failure in
            context.perform(now: now, deadline: deadline, isInterrupted: isInterrupted) { call in
                table.pointee.read(opened.storage, call, &request, failure)
            }
        }
        return sink.records
    }

    /// Which records are scanned.
    struct Range {
        var order = CRUDD_BY_ID
        var lower = ""
        var upper = ""
        var sequences: (lower: UInt64, upper: UInt64) = (0, 0)

        func raw(_ bytes: RawBytes) -> crudd_range {
            var range = crudd_range.sized()
            range.order = UInt32(order)
            range.lower = bytes(lower)
            range.upper = bytes(upper)
            range.lower_sequence = sequences.lower
            range.upper_sequence = sequences.upper
            return range
        }
    }

    func scan(
        _ range: Range, after: String = "", limit: Int = 0, flags: Int = 0, maximum: Int = .max,
        in collection: OpaquePointer, now: Int64 = CallContext.now
    ) throws -> [String] {
        let raw = RawBytes()
        let sink = Sink(maximum: maximum)
        defer { withExtendedLifetime((raw, sink)) {} }
        var rawRange = range.raw(raw)
        let context = CallContext()
        try call { table, failure in
            withUnsafePointer(to: &rawRange) { range in
                var request = crudd_scan.sized()
                request.flags = UInt32(flags)
                request.collection = collection
                request.range = range
                request.after_id = raw(after)
                request.limit = limit
                request.emit = Sink.emit
                request.context = Unmanaged.passUnretained(sink).toOpaque()
                return table.pointee.scan(opened.storage, context.begin(now: now), &request, failure)
            }
        }
        return sink.records
    }

    func count(
        _ range: Range = Range(), limit: UInt64 = 0, in collection: OpaquePointer, now: Int64 = CallContext.now
    ) throws -> UInt64 {
        let raw = RawBytes()
        defer { withExtendedLifetime(raw) {} }
        var rawRange = range.raw(raw)
        var count: UInt64 = 0
        let context = CallContext()
        try call { table, failure in
            withUnsafePointer(to: &rawRange) { range in
                var request = crudd_count.sized()
                request.collection = collection
                request.range = range
                request.limit = limit
                return table.pointee.count(opened.storage, context.begin(now: now), &request, &count, failure)
            }
        }
        return count
    }

    func drop(_ name: String) throws {
        let raw = RawBytes()
        defer { withExtendedLifetime(raw) {} }
        let context = CallContext()
        try call { $0.pointee.drop_collection(opened.storage, context.begin(), raw(name), $1) }
    }

    func collections() throws -> [String] {
        let sink = Sink(maximum: .max)
        let context = CallContext()
        try call { table, failure in
            table.pointee.list_collections(
                opened.storage, context.begin(),
                { context, name in
                    // The context is the sink above.
                    Unmanaged<Sink>.fromOpaque(context!).takeUnretainedValue().records.append(name.text)
                }, Unmanaged.passUnretained(sink).toOpaque(), failure)
        }
        withExtendedLifetime(sink) {}
        return sink.records
    }
}
