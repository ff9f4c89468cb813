import CRUDTestSupport
import Testing

@testable import CRUDServer

/// What peers make a loop hold, against a model that adds up by itself.
@Suite struct BufferLedgerTests {
    private static let maximum = 16 << 20

    /// One session, and what the test has charged it for.
    private struct Session {
        let uid: UInt32
        let account: SessionAccount
        var requests: [Int] = []
        var buffered = 0

        var held: Int { requests.reduce(0, +) + buffered }
    }

    /// Whatever is charged, grows, is released or goes with its session: nothing is counted twice or forgotten, no user
    /// gets more than half of what the others leave, and in the end all is free again.
    @Test(arguments: 1...20)
    func countsAsTheModel(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let ledger = BufferLedger(maximum: Self.maximum)
        var sessions: [Session] = []
        for _ in 0..<4000 {
            let index = sessions.indices.randomElement(using: &random)
            switch (Int.random(in: 0..<20, using: &random), index) {
            case (0, _), (_, nil):
                let uid = UInt32.random(in: 1...3, using: &random)
                sessions.append(Session(uid: uid, account: SessionAccount(ledger.account(of: uid))))
            case (1, let index?): sessions.remove(at: index)
            case (2..<10, let index?):
                request(Int.random(in: 1...(4 << 20), using: &random), &sessions, index)
            case (10..<14, let index?):
                let bytes = Int.random(in: 0...(256 << 10), using: &random)
                sessions[index].account.chargeBuffered(bytes)
                // Some bytes are not worth being charged.
                sessions[index].buffered = bytes < 4096 ? 0 : bytes
            case (_, let index?):
                guard let bytes = sessions[index].requests.popLast() else { continue }
                sessions[index].account.charge(-bytes)
            }
            let isCounted = sessions.allSatisfy { $0.account.held == $0.held }
            try #require(isCounted && ledger.held == sessions.reduce(0) { $0 + $1.held })
        }
        sessions.removeAll()
        #expect(ledger.held == 0)
    }

    /// Charges a session if there is room for so much.
    private func request(_ bytes: Int, _ sessions: inout [Session], _ index: Int) {
        let session = sessions[index]
        let room = session.account.room(for: bytes, replacing: 0, output: session.buffered, maximum: .max)
        let own = sessions.filter { $0.uid == session.uid }.reduce(0) { $0 + $1.held }
        let others = sessions.filter { $0.uid != session.uid }.reduce(0) { $0 + $1.held }
        let isWithinShare = own + bytes <= (Self.maximum - others) / 2
        #expect((room == .available) == isWithinShare)
        guard room == .available else { return }
        session.account.charge(bytes)
        sessions[index].requests.append(bytes)
    }

    /// Of one user's sessions one at a time may exceed the user's share, until it holds little again.
    @Test func oneSessionOfAUserIsOverdrawn() {
        let ledger = BufferLedger(maximum: Self.maximum)
        let first = SessionAccount(ledger.account(of: 1))
        let second = SessionAccount(ledger.account(of: 1))
        let other = SessionAccount(ledger.account(of: 2))
        func room(_ account: SessionAccount, _ bytes: Int) -> SessionAccount.Room {
            account.room(for: bytes, replacing: 0, output: 0, maximum: .max)
        }
        first.charge(6 << 20)
        #expect(room(first, 4 << 20) == .withheldByUser && room(second, 4 << 20) == .withheldByUser)
        first.overdraw()
        second.overdraw()
        #expect(first.isOverdrawn && !second.isOverdrawn)
        #expect(room(first, 4 << 20) == .available && room(second, 4 << 20) == .withheldByUser)
        #expect(room(other, 4 << 20) == .available && room(other, 6 << 20) == .withheldByUser)
        first.charge(-(6 << 20))
        #expect(!first.isOverdrawn)
        second.overdraw()
        #expect(second.isOverdrawn)
    }

    /// A session that goes takes its overdraft along, and what it was charged for.
    @Test func aSessionThatGoesLeavesNothing() {
        let ledger = BufferLedger(maximum: Self.maximum)
        let staying = SessionAccount(ledger.account(of: 1))
        do {
            let going = SessionAccount(ledger.account(of: 1))
            going.charge(9 << 20)
            going.overdraw()
            #expect(staying.room(for: 1 << 20, replacing: 0, output: 0, maximum: .max) == .withheldByUser)
        }
        staying.overdraw()
        #expect(staying.isOverdrawn && ledger.held == 0)
    }

    /// A session at its own limit waits for itself, unless everything that it holds waits: then one of that has to
    /// start.
    @Test func aSessionThatOnlyWaitsMayStart() {
        let ledger = BufferLedger(maximum: Self.maximum)
        let account = SessionAccount(ledger.account(of: 1))
        let maximum = 1 << 20
        account.charge(maximum)
        #expect(account.room(for: 1, replacing: 0, output: 0, maximum: maximum) == .withheldBySession)
        account.wait(maximum)
        #expect(account.room(for: 1, replacing: 0, output: 0, maximum: maximum) == .available)
        // Another frame has to wait for them.
        #expect(account.room(for: 1, replacing: 0, output: 0, besides: 0, maximum: maximum) == .withheldBySession)
        account.wait(-maximum)
        #expect(account.room(for: 1, replacing: 0, output: 0, maximum: maximum) == .withheldBySession)
    }
}
