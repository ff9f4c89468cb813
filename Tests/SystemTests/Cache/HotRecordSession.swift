import CRUDTestSupport

/// A session that reads and writes hot records at random.
struct HotRecordSession {
    let connection: Connection
    let records: [HotRecord]
    var random: SeededGenerator
    /// What it has seen of each record.
    private var seen: [Int]
    private(set) var reads = 0
    private(set) var writes = 0

    init(_ connection: Connection, _ records: [HotRecord], seed: UInt64) {
        self.connection = connection
        self.records = records
        random = SeededGenerator(seed: seed)
        seen = Array(repeating: 0, count: records.count)
    }

    /// Runs until a deadline; on a busy machine for longer, until there is something to tell.
    mutating func run(until deadline: Deadline) throws {
        let end = Deadline()
        while !deadline.hasPassed || (reads <= 70 || writes <= 10) && !end.hasPassed {
            let index = Int(random.next() % UInt64(records.count))
            switch random.next() % 100 {
            case 0..<6: try write(records[index], "record.upsert")
            case 6..<10: try write(records[index], "record.patch")
            case 10..<13: try write(records[index], "record.delete")
            default: try read(index)
            }
        }
    }

    // MARK: Reading

    private mutating func read(_ index: Int) throws {
        let record = records[index]
        let oldest = record.oldest(seen[index])
        let reply: Reply
        let item: JSON?
        switch random.next() % 4 {
        case 0:
            reply = try connection.readMany(record.collection, [HotRecord.id, "none"])
            item = reply.result?["records"]?.elements?.first?["item"]
        case 1:
            reply = try connection.read(record.collection, HotRecord.id, fields: #"["number"]"#)
            item = reply.result?["item"]
        default:
            reply = try connection.read(record.collection, HotRecord.id)
            item = reply.result?["item"]
        }
        if let error = reply.error, error.name != "record_not_found" {
            guard error.name == "unavailable" else { throw Failure("\(record.collection): \(reply)") }
            return
        }
        reads += 1
        seen[index] = try record.check(item?["number"]?.integer, oldest: oldest)
    }

    // MARK: Writing

    private mutating func write(_ record: HotRecord, _ method: String) throws {
        writes += 1
        let id = HotRecord.id
        try record.write(deletes: method == "record.delete") { number in
            let reply =
                switch method {
                case "record.upsert":
                    // Of different lengths.
                    try connection.upsert(
                        record.collection, id,
                        #"{"number":\#(number),"text":"\#(String(repeating: "x", count: number % 50))"}"#)
                case "record.patch":
                    try connection.call(
                        method, Connection.params(record.collection, id, more: ["patch": #"{"number":\#(number)}"#]))
                default: try connection.delete(record.collection, id)
                }
            guard let error = reply.error else { return .acknowledged }
            switch error.name {
            case "record_not_found": return method == "record.delete" ? .acknowledged : .refused
            case "unavailable": return .refused
            case "outcome_unknown": return .unknown
            default: throw Failure("\(record.collection): \(reply)")
            }
        }
    }
}
