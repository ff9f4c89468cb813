import ArgumentParser
import CRUDClient
import CRUDJSON
import CRUDModel
import CRUDWire
import Glibc

/// The second pass over a dump, which has been checked: sends the records in batches, one after the other, and counts
/// those that the daemon has acknowledged, so that an error can tell how far the load has come.
struct LoadRun {
    let client: Client
    let limits: DaemonLimits
    let mode: LoadMode
    let display: ProgressDisplay?
    /// What is loaded.
    let source: LoadSource
    /// How many records the dump has.
    let total: Int
    /// Whether each batch is written as a whole or not at all.
    var isAtomic = false

    /// The records written so far, by collection.
    private var counts: [(collection: String, written: Int)] = []
    private var batch = LoadBatch()
    private var done = 0
    /// How many records may or may not have been written.
    private var unknown = 0
    private var expired = 0

    init(
        _ client: Client, _ limits: DaemonLimits, _ mode: LoadMode, of source: LoadSource = .dump, total: Int,
        display: ProgressDisplay?
    ) {
        self.client = client
        self.limits = limits
        self.mode = mode
        self.source = source
        self.total = total
        self.display = display
    }

    /// Loads the dump.
    ///
    /// - Parameter target: the collection for all records; nil: those that the dump names.
    /// - Returns: the result to print.
    mutating func load(_ input: DumpInput, into target: String?) async throws -> [UInt8] {
        do {
            var reader = DumpReader(input, maximumLineBytes: limits.frameBytes)
            var name: [UInt8] = []
            while let entry = try reader.next() {
                switch entry {
                case .collection(let collection):
                    try await send()
                    counts.append((target ?? collection, 0))
                    name = []
                    name.appendJSONString((target ?? collection).utf8)
                case .record(let record):
                    if !batch.hasRoom(for: record, in: name, limits) { try await send() }
                    append(record, line: reader.line, in: name)
                }
            }
            try await send()
        } catch let error as CRUDError {
            throw error.with(progress)
        } catch let error as ValidationError {
            throw ValidationError("\(error.message); \(progress)")
        }
        if expired > 0 { StandardError.write("crudctl: \(expired) of the records have expired and were left out\n") }
        return result
    }

    private mutating func append(_ record: DumpRecord, line: Int, in collection: [UInt8]) {
        // The clock is that of the daemon, which runs on this machine.
        var now = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &now)
        if let instant = record.expiresAt, instant <= now.tv_sec * 1000 + now.tv_nsec / 1_000_000 {
            expired += 1
            done += 1
            return
        }
        batch.append(record, line: line, as: mode.action, in: collection)
    }

    /// Sends the batch and counts the outcomes.
    private mutating func send() async throws {
        guard let first = batch.lines.first, let last = batch.lines.last, let current = counts.indices.last else {
            return
        }
        let lines = batch.lines
        let params = batch.params(isAtomic: isAtomic)
        batch = LoadBatch()
        let reply: [UInt8]
        do {
            reply = try await client.call("record.batch", json: params)
        } catch let error as CRUDError {
            if error.code == .outcomeUnknown { unknown += lines.count }
            // The daemon tells which operation of a batch is to blame, if it is one.
            let line = error.details.index.flatMap { lines.indices.contains($0) ? lines[$0] : nil }
            throw line.map { error.inLine($0, source) } ?? error.inLines(first, last, source)
        }
        guard let results = ResultObject(reply)?.elements("results"), results.count == lines.count else {
            unknown += lines.count
            throw CRUDError(.internalError, "the reply to record.batch is not one").inLines(first, last, source)
        }
        var failure: CRUDError?
        for (line, result) in zip(lines, results) {
            guard let object = ResultObject(Array(result))?.value("error") else {
                counts[current].written += 1
                continue
            }
            let error = CRUDError(errorObject: Array(object)) ?? CRUDError(.internalError, "the error is not one")
            if error.code == .outcomeUnknown { unknown += 1 }
            failure = failure ?? error.inLine(line, source)
        }
        if let failure { throw failure }
        done += lines.count
        display?.show(
            [ProgressLine(name: counts[current].collection, phase: "loading", records: done, total: total)])
    }

    /// How far the load has come, and how to continue.
    private var progress: String {
        let written = counts.reduce(0) { $0 + $1.written }
        guard written + unknown > 0 else { return "nothing was written" }
        let others = unknown > 0 ? ", and \(unknown) more may have been" : ""
        return "\(written) of \(total) records were written\(others); \(source.again) with --upsert to continue"
    }

    private var result: [UInt8] {
        var writer = JSONWriter()
        writer.object { result in
            result.key("loaded")
            result.array { list in
                for (collection, written) in counts {
                    list.object { entry in
                        entry.member("collection", collection)
                        entry.member("records", written)
                    }
                }
            }
        }
        return writer.bytes
    }
}

/// What the lines of a dump were made from; the raw value is what one of them is called.
enum LoadSource: String {
    case dump = "line"
    case table = "row"

    /// How it is loaded again.
    var again: String {
        switch self {
        case .dump: "load the dump again"
        case .table: "import the table again"
        }
    }
}

extension CRUDError {
    /// This error, with the lines of the input to which it belongs.
    fileprivate func inLines(_ first: Int, _ last: Int, _ source: LoadSource) -> CRUDError {
        guard first < last else { return inLine(first, source) }
        var error = self
        error.message = "\(source.rawValue)s \(first) to \(last): \(message)"
        return error
    }
}
