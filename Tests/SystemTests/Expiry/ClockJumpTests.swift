import CRUDTestSupport
import Glibc
import Testing

/// The machine's clock is set forward and back while records wait for their end.
@Suite struct ClockJumpTests {
    private static let configuration = Configuration(
        backends: """
            main: {plugin: sqlite, options: {path: $DIRECTORY/main.sqlite}}
            memory: {plugin: memory}
            kid: {plugin: sqlite, isolation: process, options: {path: $DIRECTORY/kid.sqlite}}
            """,
        collections: ["main", "memory", "kid"].map { "\($0): {backend: \($0), changes: true}" }.joined(separator: "\n"))

    private static func create(_ collection: String, _ id: String, ttl: Int, _ connection: Connection) throws {
        let params = #"{"collection":"\#(collection)","id":"\#(id)","item":1,"ttl":\#(ttl)}"#
        #expect(try connection.call("record.create", params).result != nil)
    }

    @Test func whatWasDeletedStaysSo() throws {
        let clock = try SetClock()
        let daemon = try Daemon(on: Installation(Self.configuration), environment: clock.environment)
        let connection = try daemon.connect()
        var cursors: [String: String] = [:]
        for collection in ["main", "memory", "kid"] {
            try Self.create(collection, "hour", ttl: 3600, connection)
            try Self.create(collection, "day", ttl: 86_400, connection)
            cursors[collection] = try connection.changes(collection).cursor
        }
        try clock.set(forward: 7200)
        for collection in ["main", "memory", "kid"] {
            #expect(try connection.exists(collection, "hour") == false)
            #expect(try connection.exists(collection, "day") == true)
            // The next write has it noticed.
            #expect(try connection.create(collection, "a", "1").result != nil)
            var deleted: [String] = []
            let deadline = Deadline()
            while deleted.isEmpty {
                let page = try connection.changes(collection, after: cursors[collection] ?? "", #""wait":20"#)
                deleted += page.changes.filter { $0["deleted"] != nil }.compactMap { $0["id"]?.string }
                cursors[collection] = page.cursor
                try #require(!deadline.hasPassed)
            }
            #expect(deleted == ["hour"])
        }
        #expect(daemon.log.contains("the clock has been set forward by 7"))
        try clock.set(forward: 0)
        for collection in ["main", "memory", "kid"] {
            #expect(try connection.exists(collection, "hour") == false)
            #expect(try connection.exists(collection, "day") == true)
            #expect(try connection.changes(collection, after: cursors[collection] ?? "").changes.isEmpty)
            #expect(try connection.create(collection, "hour", "2").result != nil)
        }
        #expect(daemon.log.contains("the clock has been set back by 7"))
        #expect(try daemon.stop() == .exited(0))
    }
}

/// A clock of real time for a daemon, which a test can set.
///
/// The C library's function is replaced by one that adds the number of seconds in a file.
struct SetClock {
    private let directory: TemporaryDirectory
    private let offset: Descriptor

    private static let source = """
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <sys/syscall.h>
        #include <time.h>
        #include <unistd.h>
        static volatile long *offset;
        __attribute__((constructor)) static void start(void) {
            int file = open(getenv("CLOCK_OFFSET"), O_RDONLY | O_CLOEXEC);
            offset = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
            close(file);
        }
        int clock_gettime(clockid_t clock, struct timespec *time) {
            int status = syscall(SYS_clock_gettime, clock, time);
            if (clock == CLOCK_REALTIME && offset != NULL) time->tv_sec += *offset;
            return status;
        }
        """

    init() throws {
        directory = try TemporaryDirectory()
        try CompiledPlugin.compile(text: Self.source, to: "\(directory.path)/clock.so")
        let number = open("\(directory.path)/offset", O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard number >= 0 else { throw Failure.system("open") }
        offset = Descriptor(owning: number)
        try set(forward: 0)
    }

    var environment: [String: String] {
        ["LD_PRELOAD": "\(directory.path)/clock.so", "CLOCK_OFFSET": "\(directory.path)/offset"]
    }

    func set(forward seconds: Int) throws {
        var seconds = seconds
        guard pwrite(offset.number, &seconds, MemoryLayout<Int>.size, 0) == MemoryLayout<Int>.size else {
            throw Failure.system("pwrite")
        }
    }
}
