import CRUDModel
import NIOCore
import Synchronization
import Testing

@testable import CRUDClient

/// What becomes of calls, without a connection and without a clock.
@Suite struct CallTableTests {
    enum Ending: Equatable, Sendable {
        case answered(String)
        case failed(CRUDError.Code, isOverdue: Bool)
        case cancelled
    }

    /// Makes a call, hands it to `events` in a table of its own, and returns how it ended.
    private func ending(
        of method: RemoteMethod, deadline: NIODeadline = .distantFuture, _ events: (inout CallTable) -> Void
    ) async throws -> Ending {
        do {
            let result = try await withCheckedThrowingContinuation { continuation in
                var table = CallTable()
                table.add(
                    Call(
                        id: 1, method: method, frame: [0, 0, 0, 1, 0x20], deadline: deadline, continuation: continuation
                    ))
                events(&table)
            }
            return .answered(String(decoding: result, as: UTF8.self))
        } catch let error as CRUDError {
            return .failed(error.code, isOverdue: error.cause is DeadlineExceeded)
        } catch is CancellationError {
            return .cancelled
        }
    }

    @Test func beforeItLeft() async throws {
        for method in [RemoteMethod.read, .create] {
            #expect(try await ending(of: method) { $0.cancel(1) } == .cancelled)
            let overdue = try await ending(of: method, deadline: .uptimeNanoseconds(5)) { table in
                let earliest = table.expire(at: .uptimeNanoseconds(4), obstacle: nil)
                #expect(earliest == .uptimeNanoseconds(5))
                let none = table.expire(at: .uptimeNanoseconds(5), obstacle: nil)
                #expect(none == nil)
            }
            #expect(overdue == .failed(.unavailable, isOverdue: true))
            let closed = try await ending(of: method) { $0.close(.closed()) }
            #expect(closed == .failed(.unavailable, isOverdue: false))
        }
    }

    @Test func afterItLeft() async throws {
        for (method, isWrite) in [(RemoteMethod.read, false), (.create, true)] {
            let cancelled = try await ending(of: method) { table in
                table.sendAll()
                table.cancel(1)
                let takes = table.takesLateAnswer(to: 1)
                #expect(takes)
            }
            #expect(cancelled == (isWrite ? .failed(.outcomeUnknown, isOverdue: false) : .cancelled))
            let overdue = try await ending(of: method, deadline: .uptimeNanoseconds(5)) { table in
                table.sendAll()
                _ = table.expire(at: .uptimeNanoseconds(5), obstacle: nil)
                let takes = table.takesLateAnswer(to: 1)
                #expect(takes)
            }
            #expect(overdue == .failed(isWrite ? .outcomeUnknown : .unavailable, isOverdue: true))
            let closed = try await ending(of: method) { table in
                table.sendAll()
                table.close(.closed())
            }
            #expect(closed == .failed(isWrite ? .outcomeUnknown : .unavailable, isOverdue: false))
            let broken = try await ending(of: method) { table in
                table.sendAll()
                table.protocolBroken(CRUDError(.internalError, "nonsense"))
                #expect(!table.hasWaiting)
            }
            #expect(broken == .failed(isWrite ? .outcomeUnknown : .internalError, isOverdue: false))
        }
    }

    @Test func whenTheConnectionIsLost() async throws {
        let lost = CRUDError(.unavailable, "gone")
        let write = try await ending(of: .create) { table in
            table.sendAll()
            table.connectionLost(lost)
            #expect(!table.hasWaiting)
        }
        #expect(write == .failed(.outcomeUnknown, isOverdue: false))
        let read = try await ending(of: .read) { table in
            let frame = table.sendAll()
            table.connectionLost(lost)
            let again = table.sendAll()
            #expect(again == frame)
            table.takeAnswered(1)??.continuation.resume(returning: Array("x".utf8))
        }
        #expect(read == .answered("x"))
    }

    @Test func readsGoAgainInTheirOrderAndBeforeTheRest() async throws {
        await withTaskGroup { group in
            let shared = SharedTable()
            let frames = (1...4).map { [UInt8]([0, 0, 0, 1, UInt8($0)]) }
            for (index, frame) in frames.enumerated() {
                let added = Signal()
                group.addTask {
                    _ = try? await withCheckedThrowingContinuation { continuation in
                        shared.table.withLock {
                            $0.add(
                                Call(
                                    id: index, method: .read, frame: frame, deadline: .distantFuture,
                                    continuation: continuation))
                        }
                        added.send()
                    }
                }
                await added.wait()
                if index == 2 { _ = shared.table.withLock { $0.sendAll() } }
            }
            shared.table.withLock { table in
                table.connectionLost(.closed())
                let sent = table.sendAll()
                #expect(sent == frames.flatMap { $0 })
                table.close(.closed())
            }
        }
    }

    private final class SharedTable: Sendable {
        let table = Mutex(CallTable())
    }

    @Test func onlyKnowsWhatWasAsked() {
        var table = CallTable()
        let takes = table.takesLateAnswer(to: 1)
        #expect(!takes)
    }
}

extension CallTable {
    /// Sends all that waits and returns it.
    @discardableResult
    fileprivate mutating func sendAll() -> [UInt8] {
        var buffer = ByteBuffer()
        send(into: &buffer, enough: .max, maximumFrameBytes: 100)
        return Array(buffer.readableBytesView)
    }

    /// Whether an answer to `id` is one that was asked for and that nobody waits for any more.
    fileprivate mutating func takesLateAnswer(to id: Int) -> Bool {
        guard case .some(.none) = takeAnswered(id) else { return false }
        return true
    }
}
