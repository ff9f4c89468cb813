import CRUDConfiguration
import CRUDModel
import CRUDStorage

/// The result of `daemon.metrics`: every metric of the daemon. `etc/OPERATIONS.md` has the table.
enum MetricsText {
    private typealias Label = OpenMetricsWriter.Label

    /// How many collections have a sample.
    private static let maximumCollections = 100

    static func make(_ service: Service, _ loops: LoopMeasurement) -> [UInt8] {
        var writer = OpenMetricsWriter()
        writer.begin("crudd_build_info", .gauge, "Always 1; the label is the version of the daemon.")
        writer.sample(1, [Label("version", CRUDVersion.current)])
        write(loops, to: &writer)
        writer.begin("crudd_slow_requests", .counter, "Requests that took longer than log.slow.")
        writer.sample(service.slowLog.count)
        writeSessions(service, loops, to: &writer)
        write(service.backends, to: &writer)
        write(service.cache, maximumBytes: service.configuration.cacheBytes, to: &writer)
        write(service.mover.progress, to: &writer)
        write(ProcessStatistics(), to: &writer)
        return writer.finish()
    }

    private static let nanoseconds = 1e9

    // MARK: Requests

    private static func write(_ loops: LoopMeasurement, to writer: inout OpenMetricsWriter) {
        let requests = loops.requests
        writer.begin("crudd_requests", .counter, "Requests by method, and by outcome: ok, or the name of an error.")
        for method in 0..<RequestCounts.methodCount {
            let name = RequestCounts.name(ofMethod: method)
            for (index, outcome) in RequestOutcome.names.enumerated() {
                let count = requests.count(method, outcome: index)
                // Successes have a sample from the start, so that a rate has a first value.
                guard count > 0 || index == 0 && method != RequestCounts.unknownMethod else { continue }
                writer.sample(count, [Label("method", name), Label("outcome", outcome)])
            }
        }
        writer.begin(
            "crudd_request_duration_seconds", .histogram,
            "Time from the arrival of a request to the sending of its reply.")
        for (method, durations) in requests.durations.enumerated() where durations.count > 0 {
            writer.sample(durations, [Label("method", RequestCounts.name(ofMethod: method))], per: nanoseconds)
        }
        writer.begin(
            "crudd_collection_requests", .counter,
            "Requests by collection, of the \(maximumCollections) collections with the most.")
        let hottest = loops.collections.sorted { $0.value > $1.value }.prefix(maximumCollections)
        for (name, count) in hottest { writer.sample(count, [Label("collection", name)]) }
    }

    private static func writeSessions(
        _ service: Service, _ loops: LoopMeasurement, to writer: inout OpenMetricsWriter
    ) {
        let sessions = service.sessions.counts
        writer.begin("crudd_sessions", .gauge, "Sessions now.")
        writer.sample(sessions.current)
        writer.begin("crudd_sessions_opened", .counter, "Sessions that have been accepted.")
        writer.sample(sessions.opened)
        writer.begin(
            "crudd_sessions_refused", .counter,
            "Connections that were refused by a limit or for lack of resources.")
        writer.sample(sessions.refused)
        writer.begin("crudd_changes_followers", .gauge, "Requests that are held back until a collection changes.")
        writer.sample(loops.followers)
        writer.begin("crudd_buffer_bytes", .gauge, "What the daemon holds for its peers: requests, pages and replies.")
        writer.sample(loops.heldBytes)
        writer.begin("crudd_buffer_limit_bytes", .gauge, "How much that may be (limits.buffer_bytes).")
        writer.sample(service.configuration.limits.bufferBytes)
        writer.begin("crudd_received_bytes", .counter, "Bytes that have come from clients.")
        writer.sample(loops.receivedBytes)
        writer.begin("crudd_sent_bytes", .counter, "Bytes that have been sent to clients.")
        writer.sample(loops.sentBytes)
    }

    // MARK: Storage

    private static func write(_ backends: [Backend], to writer: inout OpenMetricsWriter) {
        let statuses = backends.map { (label: Label("backend", $0.name), status: $0.status) }
        writer.begin("crudd_backend_state", .gauge, "1 for the state that a backend is in, 0 for the others.")
        for (label, status) in statuses {
            for state in Backend.State.allCases {
                writer.sample(status.state == state ? 1 : 0, [label, Label("state", state.rawValue)])
            }
        }
        writer.begin("crudd_backend_restarts", .counter, "How often a backend was opened again after it was lost.")
        for (label, status) in statuses { writer.sample(status.restarts, [label]) }
        writer.begin("crudd_backend_queue_length", .gauge, "Batches and searches that wait for a backend's threads.")
        for backend in backends { writer.sample(backend.queueLength, [Label("backend", backend.name)]) }
        let writes = backends.map { (label: Label("backend", $0.name), counts: $0.writeCounts) }
        writer.begin("crudd_backend_batch_size", .histogram, "Changes that a backend's plugin was given in one call.")
        for (label, counts) in writes { writer.sample(counts.batchSizes, [label]) }
        writer.begin("crudd_backend_write_duration_seconds", .histogram, "Time of one such call, its commit included.")
        for (label, counts) in writes { writer.sample(counts.durations, [label], per: nanoseconds) }
    }

    private static func write(_ cache: RecordCache, maximumBytes: Int, to writer: inout OpenMetricsWriter) {
        let statistics = cache.statistics
        writer.begin("crudd_cache_hits", .counter, "Records that were found in the cache.")
        writer.sample(statistics.hits)
        writer.begin("crudd_cache_misses", .counter, "Records that were not found in the cache.")
        writer.sample(statistics.misses)
        writer.begin("crudd_cache_evictions", .counter, "Records that made way for others.")
        writer.sample(statistics.evictions)
        writer.begin("crudd_cache_records", .gauge, "Records in the cache.")
        writer.sample(statistics.entries)
        writer.begin("crudd_cache_bytes", .gauge, "Memory that the cache takes.")
        writer.sample(statistics.bytes)
        writer.begin("crudd_cache_limit_bytes", .gauge, "How much that may be (cache.bytes).")
        writer.sample(maximumBytes)
    }

    private static func write(_ moves: [Move.Progress], to writer: inout OpenMetricsWriter) {
        let labels = moves.map { Label("collection", $0.collection) }
        writer.begin("crudd_move_state", .gauge, "1 for the phase that the move of a collection is in.")
        for (label, move) in zip(labels, moves) { writer.sample(1, [label, Label("state", move.phase.rawValue)]) }
        writer.begin("crudd_move_copied_records", .gauge, "Records that the move of a collection has copied.")
        for (label, move) in zip(labels, moves) { writer.sample(move.copied, [label]) }
        writer.begin("crudd_move_records", .gauge, "Records that it has to copy.")
        for (label, move) in zip(labels, moves) { writer.sample(move.total, [label]) }
    }

    // MARK: The process

    private static func write(_ process: ProcessStatistics, to writer: inout OpenMetricsWriter) {
        writer.begin("process_cpu_seconds", .counter, "User and system CPU time spent.")
        writer.sample(process.cpuSeconds)
        writer.begin("process_resident_memory_bytes", .gauge, "Resident memory size.")
        writer.sample(process.residentBytes)
        writer.begin("process_virtual_memory_bytes", .gauge, "Virtual memory size.")
        writer.sample(process.virtualBytes)
        writer.begin("process_open_fds", .gauge, "Open file descriptors.")
        writer.sample(process.openDescriptors)
        writer.begin("process_max_fds", .gauge, "Maximum number of open file descriptors.")
        writer.sample(process.maximumDescriptors)
        writer.begin("process_start_time_seconds", .gauge, "When the process started, since 1970-01-01 UTC.")
        writer.sample(process.startSeconds)
    }
}
