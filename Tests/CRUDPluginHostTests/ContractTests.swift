import CRUDPluginABI
import Testing

@testable import CRUDPluginHost

/// The parts of the contract that host and plugins of several versions have in common.
@Suite struct ContractTests {
    // MARK: Structs that grow

    /// A struct of the other side, made of bytes that are not ours behind its end.
    private func read(size: Int, _ set: (inout crudd_record) -> Void) -> crudd_record {
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 512, alignment: 16)
        defer { room.deallocate() }
        room.initializeMemory(as: UInt8.self, repeating: 0xA5)
        let place = room.baseAddress!.bindMemory(to: crudd_record.self, capacity: 1)
        set(&place.pointee)
        place.pointee.struct_size = UInt32(size)
        return crudd_record.read(place)
    }

    @Test func knowTheirSize() {
        #expect(crudd_record.sized().struct_size == UInt32(MemoryLayout<crudd_record>.size))
        #expect(crudd_record.sized().sequence == 0)
    }

    @Test(arguments: [MemoryLayout<crudd_record>.size, MemoryLayout<crudd_record>.size + 100])
    func areReadAsFarAsBothKnowThem(size: Int) {
        let read = read(size: size) { record in
            record.sequence = 7
            record.key_count = 3
        }
        #expect(read.sequence == 7 && read.key_count == 3)
    }

    @Test func whatIsNotThereIsZero() throws {
        let size = try #require(MemoryLayout<crudd_record>.offset(of: \.sequence))
        let read = read(size: size) { record in
            record.expires_at = 5
            record.sequence = 7
        }
        #expect(read.expires_at == 5 && read.sequence == 0 && read.keys == nil && read.key_count == 0)
        #expect(self.read(size: 4) { $0.expires_at = 5 }.expires_at == 0)
    }

    // MARK: Calls

    @Test func aCallSaysWhatItIsTold() {
        let context = CallContext()
        let call = context.begin(now: 1, deadline: 2)
        #expect(call.pointee.struct_size == UInt32(MemoryLayout<crudd_call>.size))
        #expect(call.pointee.now == 1 && call.pointee.deadline == 2 && call.pointee.interrupted == nil)
        #expect(context.begin().pointee.deadline == 0, "not the one of the call before")
    }

    @Test func aCallCanBeInterrupted() {
        let context = CallContext()
        var asked = 0
        func isInterrupted() -> Bool {
            asked += 1
            return asked == 2
        }
        let answers = context.perform(isInterrupted: isInterrupted) { call in
            (0..<3).map { _ in call.pointee.interrupted!(call.pointee.context) }
        }
        #expect(answers == [0, 1, 0])
        #expect(context.begin().pointee.interrupted == nil && context.begin().pointee.context == nil)
    }

    @Test func clocksAreTheContracts() {
        let before = CallContext.monotonicNanoseconds
        let deadline = CallContext.deadline(in: .milliseconds(1500))
        #expect(deadline >= before + 1_500_000_000 && deadline < before + 11_500_000_000)
        #expect(CallContext.now > 1_700_000_000_000 && CallContext.now < 10_000_000_000_000)
    }

    // MARK: Failures

    @Test func failuresComeBack() {
        let report = FailureReport()
        report.pointer.pointee.set(PluginFailure(status: 0, message: "why", pointer: "/a"))
        let failure = report.take(status: crudd_status(CRUDD_NO_SPACE))
        #expect(failure.status == CRUDD_NO_SPACE && failure.message == "why" && failure.pointer == "/a")
        #expect(report.take(status: crudd_status(CRUDD_INTERNAL)).message.isEmpty, "zeroed for the next call")
        #expect(throws: Never.self) { try report.check(crudd_status(CRUDD_OK)) }
    }

    /// Of a long text whole characters are kept, and a terminator.
    @Test func longFailuresAreCut() {
        let report = FailureReport()
        let long = String(repeating: "é", count: 1000)
        report.pointer.pointee.set(PluginFailure(status: 0, message: "x" + long, pointer: long))
        let failure = report.take(status: 0)
        #expect(failure.message == "x" + String(repeating: "é", count: 255))
        #expect(failure.pointer == String(repeating: "é", count: 127))
    }
}
