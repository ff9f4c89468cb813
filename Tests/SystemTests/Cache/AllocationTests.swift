import CRUDTestSupport
import Glibc
import Testing

/// How many heap allocations a read of a cached record costs: none.
///
/// That holds for optimised code. Without optimisation Swift allocates memory for closures and accessors, 23 times for
/// a read; more than ``limit`` is a sign of something else. `Tests/Allocations/run` runs these tests on a daemon that
/// is built with optimisation.
@Suite struct AllocationTests {
    private static let limit = getenv("CRUDD_PRODUCTS") == nil ? 30 : 0.01

    private let connection: Connection
    private let counter: String
    private let read = Connection.frame(Connection.request("record.read", Connection.params("c", "a"), id: "1"))

    init() throws {
        let installation = try Installation(Configuration(loops: 1))
        let shim = "\(installation.path)/counting-allocator.so"
        counter = "\(installation.path)/allocations"
        try CompiledPlugin.compile("counting-allocator.c", to: shim)
        try Files.write(String(repeating: "\0", count: 8), to: counter)
        let variables = ["LD_PRELOAD": shim, "ALLOCATIONS": counter]
        connection = try Daemon(on: installation, environment: variables).connect()
        #expect(try connection.create("c", "a", #"{"name":"Ada"}"#).result != nil)
        try send(100, atOnce: 10)
    }

    private var allocations: UInt {
        get throws { try Files.read(counter).withUnsafeBytes { $0.loadUnaligned(as: UInt.self) } }
    }

    /// Reads so many times.
    private func send(_ count: Int, atOnce depth: Int) throws {
        let frames = Array(repeating: read, count: depth).flatMap { $0 }
        for _ in 0..<count / depth {
            try connection.send(frames)
            for _ in 0..<depth { _ = try #require(try connection.receiveFrame()) }
        }
    }

    @Test(arguments: [1, 16])
    func cachedReadsAllocateNothing(depth: Int) throws {
        let before = try allocations
        try send(10_000, atOnce: depth)
        let perRead = try Double(allocations - before) / 10_000
        #expect(try allocations > 1000, "they are counted")
        #expect(perRead < Self.limit)
    }

    /// The counter would see them: a request that has to allocate.
    @Test func otherRequestsAllocate() throws {
        let before = try allocations
        for _ in 0..<10 { #expect(try connection.call("collection.list").result != nil) }
        #expect(try allocations - before >= 10)
    }
}
