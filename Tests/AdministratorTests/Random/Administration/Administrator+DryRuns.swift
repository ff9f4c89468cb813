import CRUDTestSupport

/// Dry runs: what one says is what the reload then does.
extension Administrator {
    /// What a dry run has said of a reload.
    struct Forecast {
        let result: JSON
        let wanted: Layout
        /// Whether a backend is opened: what is noticed then is not known before.
        let opensBackend: Bool
        let isForced: Bool
    }

    /// Has the daemon tell what a reload of the file would do. No client uses the collections that it changes until the
    /// pause is ended.
    ///
    /// - Returns: nil where that may become something else before the reload, because something is broken, moved or
    ///   removed.
    func forecast(of wanted: Layout, _ changed: [String], _ options: String, isForced: Bool) throws -> Forecast? {
        guard faults.locks.isEmpty, !faults.isFull, faults.stopped == nil, openDrops.isEmpty else { return nil }
        for name in changed { try pause(name) }
        let status = try reply(to: "daemon.status").result
        let isAtRest = ["moves", "removals"].allSatisfy { status?[$0]?.elements?.isEmpty == true }
        guard isAtRest, status?["backends"]?.members?.allSatisfy({ $0.value.string == "ready" }) == true else {
            return nil
        }
        let reply = try reply(to: "daemon.reload", "{\"dryRun\":true,\(options)}")
        trace.add("dry run: \(reply)", to: changed)
        guard let result = reply.result else {
            guard reply.error?.name == "unavailable" else { throw Violation(description: "a dry run: \(reply)") }
            return nil
        }
        // A child that has just been killed may have started again by the time of the reload.
        guard Self.strings(result["refusals"]).allSatisfy({ !$0.contains("an unknown number of records") }) else {
            return nil
        }
        let forecast = Forecast(
            result: result, wanted: wanted, opensBackend: wanted.hasSpare && !layout.hasSpare, isForced: isForced)
        try checkRecords(of: forecast)
        return forecast
    }

    /// The records that are moved or orphaned are those that there are, and every format holds them.
    private func checkRecords(of forecast: Forecast) throws {
        for member in ["moving", "orphaned"] {
            for entry in forecast.result[member]?.elements ?? [] {
                let name = entry["collection"]?.string ?? ""
                guard let history = load.histories[name] else {
                    throw Violation(description: "a dry run names what is not there: \(entry.text)")
                }
                let possible = (0..<history.count).count { history.items(of: $0) != [nil] }
                if let count = entry["records"]?.integer, !(history.certainCount...possible ~= count) {
                    throw Violation(description: "\(name): a dry run counts other records: \(entry.text)")
                }
                if let refused = entry["format"]?["refused"]?.integer, refused > 0 {
                    throw Violation(description: "\(name): a dry run has a format refuse records: \(entry.text)")
                }
                let place = member == "moving" ? Place(entry["to"]) : nil
                if let place, place != forecast.wanted.rules[name]?.place {
                    throw Violation(description: "\(name): a dry run names another destination: \(entry.text)")
                }
            }
        }
    }

    /// Compares what the reload has done with what the dry run said.
    func check(_ reply: Reply, _ forecast: Forecast) throws {
        let refusals = Self.strings(forecast.result["refusals"])
        let violation = Violation(description: "a dry run said \(forecast.result.text), and the reload: \(reply)")
        if let result = reply.result {
            guard refusals.isEmpty, forecast.isForced || forecast.result["orphaned"]?.elements?.isEmpty == true else {
                throw violation
            }
            for member in ["changes", "moves", "cancelled"] {
                // Of a backend that is opened more becomes known.
                let (said, done) = (Self.strings(forecast.result[member]), Self.strings(result[member]))
                guard forecast.opensBackend ? Set(said).isSubset(of: done) : said == done else { throw violation }
            }
            forecastCount += 1
        } else if reply.error?.name == "invalid_configuration" {
            let message = reply.error.map { [$0.message] } ?? []
            let lines = reply.error?.details?["errors"].map { Self.strings($0) } ?? message
            guard forecast.opensBackend || Set(lines).isSubset(of: refusals) else { throw violation }
            forecastCount += 1
        }
    }

    private static func strings(_ list: JSON?) -> [String] { list?.elements?.compactMap(\.string) ?? [] }
}
