import FoundationEssentials

/// One line of the results, as JSON that `crudd-bench report` reads.
enum Finding: Codable {
    case measurement(Measurement)
    case start(Start)
    case size(Size)
    case scan(Scan)
    case following(Following)
    case move(Move)
    case build(Build)
    case expiration(Expiration)
    case cached(Cached)
    case crowd(Crowd)
    case shared(Shared)
    case note(Note)

    /// One run of one workload.
    struct Measurement: Codable {
        var target: String
        var operation: String
        var ids: String
        var connections: Int
        /// So many of them send requests; nil: all.
        var active: Int?
        var depth: Int
        /// Bytes of an item; nil: 200.
        var valueBytes: Int?
        /// The CPUs of client and server: `one` for both, `two`, or `free`, wherever the kernel puts them.
        var placement: String
        var round: Int
        var requests: Int
        var seconds: Double
        var requestsPerSecond: Double
        var p50Microseconds: Double
        var p99Microseconds: Double
        var p999Microseconds: Double
        /// Processor time of the load generator for each request.
        var clientMicroseconds: Double?
        /// Processor time of the server for each request.
        var serverMicroseconds: Double?
        /// Of a long run: its concurrent load, the requests of each second, the largest size of the watched file.
        var beside: String?
        var pace: [Int]?
        var watchedBytesMaximum: Int?
        /// Of a run with a child that may be killed: how often it was killed.
        var kills: Int?
        /// Of a run on the backend whose child is killed: the replies with these errors, and the longest time without a
        /// success.
        var unavailable: Int?
        var outcomeUnknown: Int?
        var longestPauseMilliseconds: Double?
        /// Of a run with and without a disturbance: its name, and whether there was one.
        var experiment: Experiment?
        var isDisturbed: Bool?
    }

    /// Several starts of a daemon.
    struct Start: Codable {
        var target: String
        /// From its exec to its READY=1.
        var readyMilliseconds: [Double]
        var residentKiB: [Int]
    }

    struct Size: Codable {
        var name: String
        var bytes: Int
    }

    /// How many records a filter without an index scans.
    struct Scan: Codable {
        var target: String
        var recordsPerSecond: Double
    }

    /// How soon after the reply to a write the followers of its collection get it.
    struct Following: Codable {
        var followers: Int
        var writes: Int
        var p50Microseconds: Double
        var p99Microseconds: Double
        /// Of the slowest follower of each write.
        var lastP99Microseconds: Double
    }

    /// How many records of a move were copied in how much time.
    struct Move: Codable {
        var records: Int
        var seconds: Double
        /// The concurrent load; nil: none.
        var beside: String?
    }

    /// How long it took until new indexes of a collection in a child served.
    struct Build: Codable {
        var indexes: Int
        var records: Int
        var seconds: Double
        /// How often the child has been restarted meanwhile.
        var restarts: Int
    }

    /// How soon after the instant at which all records of a collection expire the storage has none of them.
    struct Expiration: Codable {
        var records: Int
        var seconds: Double
        /// By how much the daemon's resident memory has grown meanwhile, at most.
        var residentBytes: Int
    }

    /// By how much the daemon's resident memory has grown with so many records in its cache.
    struct Cached: Codable {
        var records: Int
        var residentBytes: Int
    }

    /// What is done to one collection of many.
    struct Crowd: Codable {
        var collections: Int
        /// Medians.
        var dropMilliseconds: Double
        var reloadMilliseconds: Double
        /// From the daemon's exec to its READY=1.
        var readyMilliseconds: [Double]
        /// By how much the daemon's resident memory has grown meanwhile.
        var grownKiB: Int
    }

    /// What clients of several daemons that share a schema do together.
    struct Shared: Codable {
        var operation: String
        /// 0: the clients are those of the server.
        var daemons: Int
        /// Of all daemons together.
        var connections: Int
        var round: Int
        var requestsPerSecond: Double
    }

    /// A circumstance of the measurement.
    struct Note: Codable {
        var name: String
        var value: String
    }

    private enum CodingKeys: CodingKey {
        case kind
    }

    private enum Kind: String, Codable {
        case measurement, start, size, scan, following, move, build, expiration, cached, crowd, shared, note
    }

    init(from decoder: any Decoder) throws {
        switch try decoder.container(keyedBy: CodingKeys.self).decode(Kind.self, forKey: .kind) {
        case .measurement: self = .measurement(try Measurement(from: decoder))
        case .start: self = .start(try Start(from: decoder))
        case .size: self = .size(try Size(from: decoder))
        case .scan: self = .scan(try Scan(from: decoder))
        case .following: self = .following(try Following(from: decoder))
        case .move: self = .move(try Move(from: decoder))
        case .build: self = .build(try Build(from: decoder))
        case .expiration: self = .expiration(try Expiration(from: decoder))
        case .cached: self = .cached(try Cached(from: decoder))
        case .crowd: self = .crowd(try Crowd(from: decoder))
        case .shared: self = .shared(try Shared(from: decoder))
        case .note: self = .note(try Note(from: decoder))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .measurement(let measurement):
            try container.encode(Kind.measurement, forKey: .kind)
            try measurement.encode(to: encoder)
        case .start(let start):
            try container.encode(Kind.start, forKey: .kind)
            try start.encode(to: encoder)
        case .size(let size):
            try container.encode(Kind.size, forKey: .kind)
            try size.encode(to: encoder)
        case .scan(let scan):
            try container.encode(Kind.scan, forKey: .kind)
            try scan.encode(to: encoder)
        case .following(let following):
            try container.encode(Kind.following, forKey: .kind)
            try following.encode(to: encoder)
        case .move(let move):
            try container.encode(Kind.move, forKey: .kind)
            try move.encode(to: encoder)
        case .build(let build):
            try container.encode(Kind.build, forKey: .kind)
            try build.encode(to: encoder)
        case .expiration(let expiration):
            try container.encode(Kind.expiration, forKey: .kind)
            try expiration.encode(to: encoder)
        case .cached(let cached):
            try container.encode(Kind.cached, forKey: .kind)
            try cached.encode(to: encoder)
        case .crowd(let crowd):
            try container.encode(Kind.crowd, forKey: .kind)
            try crowd.encode(to: encoder)
        case .shared(let shared):
            try container.encode(Kind.shared, forKey: .kind)
            try shared.encode(to: encoder)
        case .note(let note):
            try container.encode(Kind.note, forKey: .kind)
            try note.encode(to: encoder)
        }
    }

    /// The line, without the line feed.
    func line() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(self), as: UTF8.self)
    }

    /// The lines of a file.
    static func read(_ path: String) throws -> [Finding] {
        let decoder = JSONDecoder()
        return try Data(contentsOf: URL(filePath: path)).split(separator: UInt8(ascii: "\n")).map {
            try decoder.decode(Finding.self, from: $0)
        }
    }
}

extension Double {
    /// The number with so many digits after the point.
    func text(digits: Int) -> String {
        let scale = (0..<digits).reduce(1.0) { product, _ in product * 10 }
        let scaled = Int((self * scale).rounded())
        guard digits > 0 else { return "\(scaled)" }
        let fraction = String(scaled % Int(scale))
        return "\(scaled / Int(scale))." + String(repeating: "0", count: digits - fraction.utf8.count) + fraction
    }
}
