import CRUDPluginHost
import CRUDTestSupport
import Glibc
import Testing

@testable import CRUDStorage

/// How many threads read for a backend: as many as its plugin prefers.
@Suite struct ReadingThreadsTests {
    /// A FIFO at which a read of the scripted plugin waits.
    private final class Gate {
        let id: String
        private let path: String

        init(in directory: TemporaryDirectory, _ number: Int) throws {
            path = "\(directory.path)/gate-\(number)"
            id = "wait:\(path)"
            guard mkfifo(path, 0o600) == 0 else { throw Failure.system("mkfifo") }
        }

        /// Waits until a read has arrived here, and lets it pass.
        func pass(until deadline: Deadline = Deadline()) throws {
            while true {
                let descriptor = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
                if descriptor >= 0 {
                    close(descriptor)
                    return
                }
                guard errno == ENXIO, !deadline.hasPassed else { throw Failure("no read has come to \(path)") }
                sched_yield()
            }
        }
    }

    @Test(arguments: [(0, 1), (1, 1), (4, 4)])
    func thereAreAsManyReadersAsThePluginPrefers(preferred: Int, readers: Int) throws {
        let test = try TestBackend.opened(options: #"{"preferred_readers":\#(preferred)}"#, loops: 2)
        #expect(test.backend.readQueues.count == readers)
        #expect(test.plugin[.readers] == 2 + readers, "loops have theirs besides")
        test.backend.stop()
        #expect(test.plugin[.violations] == 0)
    }

    @Test func thereAreNoneWithoutConcurrentReads() throws {
        let test = try TestBackend.opened(capabilities: [], options: #"{"preferred_readers":4}"#)
        #expect(!test.backend.hasReadQueues)
        #expect(test.plugin[.readers] == 0)
    }

    @Test func thereAreNotTooMany() throws {
        let test = try TestBackend.opened(options: #"{"preferred_readers":100000}"#)
        #expect(test.backend.readQueues.count == 64)
    }

    /// Reads that wait in the plugin do not keep others from being executed.
    @Test func theyReadAtTheSameTime() throws {
        let directory = try TemporaryDirectory()
        let test = try TestBackend.opened(
            capabilities: [.concurrentReads], options: #"{"preferred_readers":3}"#)
        let clients = collection()
        try test.write(.put("a"), in: clients)
        let gates = try (0..<3).map { try Gate(in: directory, $0) }
        let inbox = try Inbox<WorkItem>()
        for gate in gates { test.submit(readOf: gate.id, in: clients, to: inbox) }
        // In the opposite order: each has begun though the one before it has not ended.
        for gate in gates.reversed() {
            try gate.pass()
            _ = try inbox.take()
        }
        #expect(test.plugin[.violations] == 0)
    }

    /// What is withdrawn while the plugin hangs takes no memory, and keeps nobody else's reads from the thread.
    @Test func withdrawnReadIsRemoved() throws {
        let directory = try TemporaryDirectory()
        let test = try TestBackend.opened(capabilities: [.concurrentReads])
        let clients = collection()
        try test.write(.put("a"), in: clients)
        let gate = try Gate(in: directory, 0)
        let inbox = try Inbox<WorkItem>()
        test.submit(readOf: gate.id, in: clients, to: inbox)
        let deadline = Deadline()
        while test.plugin[.reads] == 0 {
            try #require(!deadline.hasPassed)
            sched_yield()
        }
        let withdrawn = ReadBatch { _ in }
        withdrawn.append(Read(.records([withdrawn.store(Array("a".utf8).span)]), in: clients))
        test.backend.submit(.read(.batch(withdrawn)))
        #expect(test.backend.queueLength == 2)
        #expect(withdrawn.expire())
        test.backend.remove(withdrawn)
        #expect(test.backend.queueLength == 1)
        try gate.pass()
        _ = try inbox.take()
        #expect(test.backend.queueLength == 0)
    }

    /// A thread that waits in the plugin gets nothing to read while another has nothing to do.
    @Test func theLeastBusyThreadReads() throws {
        let directory = try TemporaryDirectory()
        let test = try TestBackend.opened(capabilities: [.concurrentReads], options: #"{"preferred_readers":2}"#)
        let clients = collection()
        try test.write(.put("a"), in: clients)
        let gate = try Gate(in: directory, 0)
        let (slow, quick) = (try Inbox<WorkItem>(), try Inbox<WorkItem>())
        test.submit(readOf: gate.id, in: clients, to: slow)
        for _ in 0..<10 {
            test.submit(readOf: "a", in: clients, to: quick)
            _ = try quick.take()
        }
        try gate.pass()
        _ = try slow.take()
    }
}

extension TestBackend {
    /// Submits a read of one record.
    fileprivate func submit(readOf id: String, in collection: BackendCollection, to inbox: Inbox<WorkItem>) {
        let batch = ReadBatch { inbox.put($0) }
        batch.append(Read(.records([batch.store(Array(id.utf8).span)]), in: collection))
        backend.submit(.read(.batch(batch)))
    }
}
