import CRUDConfiguration
import CRUDHistogram
import CRUDJSON
import CRUDModel
import CRUDPlacement
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
        writer.single(
            "crudd_slow_requests", .counter, service.slowLog.count, "Requests that took longer than log.slow.")
        writeSessions(service, loops, to: &writer)
        write(service.backends, to: &writer)
        write(service.cache, maximumBytes: service.configuration.cacheBytes, to: &writer)
        let progress = service.control.progress
        write(progress.compactMap(\.move), to: &writer)
        write(progress.flatMap(\.removals), to: &writer)
        write(ProcessStatistics(), to: &writer)
        return writer.finish()
    }

    /// Writes the histograms of times with all of their ranges: what the text shows by a few bounds.
    static func writeHistograms(_ service: Service, _ loops: LoopMeasurement, to writer: inout JSONWriter) {
        let methods = loops.requests.durations.enumerated().filter { $1.count > 0 }.map { method, durations in
            (requestDurations, "method", RequestCounts.name(ofMethod: method), durations)
        }
        let backends = service.backends.map { (writeDurations, "backend", $0.name, $0.writeCounts.durations) }
        writer.member("histograms", objects: methods + backends) { histogram, members in
            let (name, label, value, durations) = histogram
            members.member("name", name)
            members.key("labels")
            members.object { $0.member(label, value) }
            members.key("counts")
            members.array { counts in
                for (range, count) in durations.values.counts.enumerated() where count > 0 {
                    counts.integer(range)
                    counts.integer(Int(clamping: count))
                }
            }
        }
    }

    private static let requestDurations = "crudd_request_duration_seconds"
    private static let writeDurations = "crudd_backend_write_duration_seconds"
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
            requestDurations, .histogram,
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
        writer.single("crudd_sessions", .gauge, sessions.current, "Sessions now.")
        writer.single("crudd_sessions_opened", .counter, sessions.opened, "Sessions that have been accepted.")
        writer.single(
            "crudd_sessions_refused", .counter, sessions.refused,
            "Connections that were refused by a limit or for lack of resources.")
        writer.begin(
            "crudd_user_refused_requests", .counter,
            "Requests that were refused because their user has made more per second than its rule of `access` allows.")
        for rate in service.rates.all { writer.sample(rate.refusedCount, [Label("uid", "\(rate.uid)")]) }
        writeQuotas(service, to: &writer)
        writer.single(
            "crudd_changes_followers", .gauge, loops.followers,
            "Requests that are held back until a collection changes.")
        writer.single(
            "crudd_buffer_bytes", .gauge, loops.heldBytes,
            "What the daemon holds for its peers: requests, pages and replies.")
        writer.single(
            "crudd_buffer_limit_bytes", .gauge, service.configuration.limits.bufferBytes,
            "How much that may be (limits.buffer_bytes).")
        writer.single("crudd_received_bytes", .counter, loops.receivedBytes, "Bytes that have come from clients.")
        writer.single("crudd_sent_bytes", .counter, loops.sentBytes, "Bytes that have been sent to clients.")
    }

    private static func writeQuotas(_ service: Service, to writer: inout OpenMetricsWriter) {
        let owners = service.quotas.owners
        let owned = service.control.catalog.ownedCollections
        writer.begin("crudd_user_collections", .gauge, "Collections that a user with quotas owns.")
        for owner in owners { writer.sample(owned[owner.uid] ?? 0, [Label("uid", "\(owner.uid)")]) }
        writer.begin("crudd_user_records", .gauge, "Records in them, as they were measured last.")
        for owner in owners {
            if let use = owner.use { writer.sample(use.records, [Label("uid", "\(owner.uid)")]) }
        }
        writer.begin("crudd_user_bytes", .gauge, "Bytes of their ids and items, as they were measured last.")
        for owner in owners {
            if let use = owner.use { writer.sample(use.bytes, [Label("uid", "\(owner.uid)")]) }
        }
        writer.begin("crudd_user_quota", .gauge, "How much of each that may be.")
        for owner in owners {
            for (name, maximum) in owner.limits.quotas {
                writer.sample(maximum, [Label("uid", "\(owner.uid)"), Label("quota", name)])
            }
        }
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
        writer.begin("crudd_backend_notice", .gauge, "Whether a backend's plugin has a notice for the administrator.")
        for (label, status) in statuses { writer.sample(status.notice == nil ? 0 : 1, [label]) }
        writer.begin("crudd_backend_restarts", .counter, "How often a backend was opened again after it was lost.")
        for (label, status) in statuses { writer.sample(status.restarts, [label]) }
        writer.begin("crudd_backend_queue_length", .gauge, "Batches and searches that wait for a backend's threads.")
        for backend in backends { writer.sample(backend.queueLength, [Label("backend", backend.name)]) }
        let writes = backends.map { (label: Label("backend", $0.name), counts: $0.writeCounts) }
        writer.begin("crudd_backend_batch_size", .histogram, "Changes that a backend's plugin was given in one call.")
        for (label, counts) in writes { writer.sample(counts.batchSizes, [label]) }
        writer.begin(writeDurations, .histogram, "Time of one such call, its commit included.")
        for (label, counts) in writes { writer.sample(counts.durations, [label], per: nanoseconds) }
    }

    private static func write(_ cache: RecordCache, maximumBytes: Int, to writer: inout OpenMetricsWriter) {
        let statistics = cache.statistics
        writer.single("crudd_cache_hits", .counter, statistics.hits, "Records that were found in the cache.")
        writer.single("crudd_cache_misses", .counter, statistics.misses, "Records that were not found in the cache.")
        writer.single("crudd_cache_evictions", .counter, statistics.evictions, "Records that made way for others.")
        writer.single("crudd_cache_records", .gauge, statistics.entries, "Records in the cache.")
        writer.single("crudd_cache_bytes", .gauge, statistics.bytes, "Memory that the cache takes.")
        writer.single("crudd_cache_limit_bytes", .gauge, maximumBytes, "How much that may be (cache.bytes).")
    }

    private static func write(_ moves: [MoveProgress], to writer: inout OpenMetricsWriter) {
        let labels = moves.map { Label("collection", $0.collection) }
        writer.begin("crudd_move_state", .gauge, "1 for the phase that the move of a collection is in.")
        for (label, move) in zip(labels, moves) { writer.sample(1, [label, Label("state", move.phase.rawValue)]) }
        writer.begin("crudd_move_copied_records", .gauge, "Records that the move of a collection has copied.")
        for (label, move) in zip(labels, moves) { writer.sample(move.copied, [label]) }
        writer.begin("crudd_move_records", .gauge, "Records that it has to copy.")
        for (label, move) in zip(labels, moves) { writer.sample(move.total, [label]) }
    }

    private static func write(_ removals: [RemovalProgress], to writer: inout OpenMetricsWriter) {
        writer.begin(
            "crudd_removal_state", .gauge, "1 for each place that a collection is being removed from, with its state.")
        for removal in removals {
            let state = removal.hasFailed ? "failed" : removal.reason == nil ? "removing" : "suspended"
            writer.sample(
                1,
                [
                    Label("collection", removal.collection), Label("backend", removal.place.backend),
                    Label("format", removal.place.format.rawValue), Label("state", state),
                ])
        }
    }

    // MARK: The process

    private static func write(_ process: ProcessStatistics, to writer: inout OpenMetricsWriter) {
        writer.single("process_cpu_seconds", .counter, process.cpuSeconds, "User and system CPU time spent.")
        writer.single("process_resident_memory_bytes", .gauge, process.residentBytes, "Resident memory size.")
        writer.single("process_virtual_memory_bytes", .gauge, process.virtualBytes, "Virtual memory size.")
        writer.single("process_open_fds", .gauge, process.openDescriptors, "Open file descriptors.")
        writer.single("process_max_fds", .gauge, process.maximumDescriptors, "Maximum number of open file descriptors.")
        writer.single(
            "process_start_time_seconds", .gauge, process.startSeconds,
            "When the process started, since 1970-01-01 UTC.")
    }
}
