import CRUDModel
import CRUDPlacement
import CRUDStorage
import CRUDTestSupport
import Glibc
import Synchronization
import Testing

/// Every system call of the catalog's file fails, alone and with all that come after it: a change that is refused has
/// not happened, one that is acknowledged has, and one that is in doubt is said to be.
@Suite struct CatalogFaultTests {
    enum Call: String, CaseIterable, Sendable {
        case open, write, shortWrite, allocate, sync, truncate, rename, syncDirectory
    }

    /// Fails calls by their kind and number.
    private final class Faults: Sendable {
        struct Plan: Sendable {
            var call: Call?
            var number = 0
            var isLasting = false
            var code = EIO
        }
        let plan = Mutex(Plan())
        let counts = Mutex<[Call: Int]>([:])
        let hits = Mutex(0)

        /// Whether a call fails; errno is set.
        func fails(_ call: Call) -> Bool {
            let number = counts.withLock { counts in
                counts[call, default: 0] += 1
                return counts[call, default: 0]
            }
            let plan = plan.withLock { $0 }
            guard plan.call == call, plan.isLasting ? number >= plan.number : number == plan.number else {
                return false
            }
            hits.withLock { $0 += 1 }
            errno = plan.code
            return true
        }

        func begin(_ plan: Plan) {
            counts.withLock { $0 = [:] }
            hits.withLock { $0 = 0 }
            self.plan.withLock { $0 = plan }
        }

        var calls: FileCalls {
            var calls = FileCalls()
            let real = FileCalls()
            calls.open = { [self] in fails(.open) ? -1 : real.open($0, $1) }
            calls.write = { [self] descriptor, bytes in
                if fails(.write) { return -1 }
                guard fails(.shortWrite) else { return real.write(descriptor, bytes) }
                return real.write(descriptor, Array(bytes.prefix(bytes.count / 2)))
            }
            calls.allocate = { [self] in fails(.allocate) ? -1 : real.allocate($0, $1) }
            calls.sync = { [self] in fails(.sync) ? -1 : real.sync($0) }
            calls.truncate = { [self] in fails(.truncate) ? -1 : real.truncate($0, $1) }
            calls.rename = { [self] in fails(.rename) ? -1 : real.rename($0, $1) }
            calls.syncDirectory = { [self] in fails(.syncDirectory) ? -1 : real.syncDirectory($0) }
            return calls
        }
    }

    struct Case: Sendable, CustomTestStringConvertible {
        var call: Call
        var number: Int
        var isLasting: Bool
        var isLong: Bool
        var testDescription: String {
            "\(call.rawValue) \(number)\(isLasting ? " and later" : "")\(isLong ? ", long record" : "")"
        }
    }

    static let cases: [Case] = Call.allCases.flatMap { call in
        (1...3).flatMap { number in
            [false, true].flatMap { isLasting in
                [false, true].map { Case(call: call, number: number, isLasting: isLasting, isLong: $0) }
            }
        }
    }

    private let resident = Placement(.resident(.main))

    @Test(arguments: cases)
    func everyCallFails(fault: Case) throws {
        let state = try StateDirectory()
        let faults = Faults()
        let catalog = try state.open(faults.calls)
        try catalog.set("a", resident)
        faults.begin(
            .init(call: fault.call, number: fault.number, isLasting: fault.isLasting))
        let names = fault.isLong ? (0..<100).map { "n\($0)" } + ["a"] : ["a"]
        let next = Placement(.resident(.other))
        let transitions = names.map { name in
            Catalog.Transition(Array(name.utf8), from: catalog.entry(Array(name.utf8)), to: next)
        }
        let before = catalog.entries
        var failure: CatalogError?
        do throws(CatalogError) { try catalog.commit(transitions) } catch { failure = error }
        let found = try state.open().entries.mapValues(\.placement)
        switch failure {
        case nil:
            #expect(catalog.placement("a") == next)
            #expect(found == catalog.entries.mapValues(\.placement), "acknowledged")
        case .failed:
            #expect(catalog.entries == before)
            #expect(found == before.mapValues(\.placement), "refused")
            #expect(!catalog.isInDoubt)
        case .inDoubt(let error):
            #expect(catalog.entries == before)
            #expect(catalog.isInDoubt && catalog.isDoubted(Array("a".utf8)))
            #expect(error.code == EIO && catalog.doubtReason == error.description)
            #expect(throws: CatalogError.self) { try catalog.set("b", resident) }
            #expect(!catalog.resolveDoubt())
        case .stale, .blocked, .invalid: Issue.record("\(String(describing: failure))")
        }
        // The disk is well again.
        faults.begin(.init())
        #expect(catalog.resolveDoubt() && !catalog.isInDoubt && !catalog.isDoubted(Array("a".utf8)))
        #expect(try state.open().entries.mapValues(\.placement) == catalog.entries.mapValues(\.placement))
        try catalog.set("b", resident)
        #expect(try state.open().entries.mapValues(\.placement) == catalog.entries.mapValues(\.placement))
    }

    /// Both a sync and the replacement of the file must fail for a record to be in doubt.
    @Test func aFailedSyncAloneIsUndone() throws {
        let state = try StateDirectory()
        let faults = Faults()
        let catalog = try state.open(faults.calls)
        try catalog.set("a", resident)
        faults.begin(.init(call: .sync, number: 1))
        let error = #expect(throws: CatalogError.self) { try catalog.set("a", Placement(.resident(.other))) }
        guard case .failed = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(try state.open().placement("a") == resident)
    }

    @Test(arguments: [(ENOSPC, CRUDError.Code.noSpace), (EDQUOT, .noSpace), (EIO, .unavailable), (EROFS, .unavailable)])
    func onlyAFullDiskIsNoSpace(code: CInt, expected: CRUDError.Code) throws {
        let state = try StateDirectory()
        let faults = Faults()
        let catalog = try state.open(faults.calls)
        try catalog.set("a", resident)
        faults.begin(.init(call: .write, number: 1, code: code))
        let error = catalog.admit(Array("b".utf8), at: .main)
        #expect(error?.code == expected && error?.message.contains(state.file) == true, "\(String(describing: error))")
    }

    /// Room that is allocated before the disk is full: half of it is for what frees room.
    @Test func dropsOnAFullDisk() throws {
        let state = try StateDirectory()
        let faults = Faults()
        let catalog = try state.open(faults.calls)
        for number in 0..<600 { try catalog.set("c\(number)", resident) }
        let blocks = try #require(Files.status(state.file)).st_blocks
        #expect(blocks * 512 > 600 * 50 + (32 << 10))
        faults.begin(.init(call: .allocate, number: 1, isLasting: true, code: ENOSPC))
        var created = 0
        while catalog.admit(Array("new \(created)".utf8), at: .main) == nil { created += 1 }
        #expect(0..<1000 ~= created)
        #expect(catalog.admit(Array("other".utf8), at: .main)?.code == .noSpace)
        for number in 0..<100 { try catalog.set("c\(number)", Placement.none) }
        let reopened = try state.open(faults.calls)
        #expect(reopened.admit(Array("other".utf8), at: .main)?.code == .noSpace)
        try reopened.set("c100", Placement.none)
        faults.begin(.init())
        #expect(reopened.admit(Array("other".utf8), at: .main) == nil)
    }

    /// A file that is mostly history, and cannot be replaced by a shorter one, is appended to.
    @Test func aFullDiskKeepsTheHistory() throws {
        let state = try StateDirectory()
        let faults = Faults()
        let catalog = try state.open(faults.calls)
        try catalog.set("a", resident)
        faults.begin(.init(call: .open, number: 1, isLasting: true, code: ENOSPC))
        for number in 0..<3000 { try catalog.set("a", Placement(.resident(number.isMultiple(of: 2) ? .other : .main))) }
        let long = try #require(Files.status(state.file)).st_size
        #expect(long > 64 << 10)
        faults.begin(.init())
        try catalog.set("a", Placement(.resident(.other)))
        let short = try #require(Files.status(state.file)).st_size
        #expect(short < 1024)
        #expect(try state.open().placement("a") == Placement(.resident(.other)))
    }
}
