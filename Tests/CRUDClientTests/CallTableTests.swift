import CRUDModel
import NIOCore
import Synchronization
import Testing

@testable import CRUDClient

/// The states of calls, without a connection and without a clock.
@Suite struct CallTableTests {
    enum Ending: Equatable, Sendable {
        case replied(String)
        case failed(CRUDError.Code, isOverdue: Bool)
        case cancelled
    }

    /// Makes a call in a table of its own, runs `events` on the table, and returns how the call ended.
    private func ending(
        of method: RemoteMethod, deadline: NIODeadline = .distantFuture, _ events: (inout CallTable) -> Void
    ) async throws -> Ending {
        do {
            let result = try await withCheckedThrowingContinuation { continuation in
                var table = CallTable()
                table.add(
                    PendingCall(
                        id: 1, method: method, frame: [0, 0, 0, 1, 0x20], deadline: deadline, continuation: continuation
                    ))
                events(&table)
            }
            return .replied(String(decoding: result, as: UTF8.self))
        } catch let error as CRUDError {
            return .failed(error.code, isOverdue: error.cause is DeadlineExceeded)
        } catch is CancellationError {
            return .cancelled
        }
    }

    @Test func beforeItIsSent() async throws {
        for method in [RemoteMethod.read, .create] {
            #expect(try await ending(of: method) { $0.cancel(1) } == .cancelled)
            let overdue = try await ending(of: method, deadline: .uptimeNanoseconds(5)) { table in
                let earliest = table.expire(at: .uptimeNanoseconds(4), obstacle: nil)
                #expect(earliest == .uptimeNanoseconds(5))
                let none = table.expire(at: .uptimeNanoseconds(5), obstacle: nil)
                #expect(none == nil)
            }
            #expect(overdue == .failed(.timedOut, isOverdue: true))
            let closed = try await ending(of: method) { $0.close(.closed()) }
            #expect(closed == .failed(.unavailable, isOverdue: false))
        }
    }

    @Test func afterItIsSent() async throws {
        for (method, isWrite) in [(RemoteMethod.read, false), (.create, true)] {
            let cancelled = try await ending(of: method) { table in
                table.sendAll()
                table.cancel(1)
                let isExpected = table.expectsLateReply(to: 1)
                #expect(isExpected)
            }
            #expect(cancelled == (isWrite ? .failed(.outcomeUnknown, isOverdue: false) : .cancelled))
            let overdue = try await ending(of: method, deadline: .uptimeNanoseconds(5)) { table in
                table.sendAll()
                _ = table.expire(at: .uptimeNanoseconds(5), obstacle: nil)
                let isExpected = table.expectsLateReply(to: 1)
                #expect(isExpected)
            }
            #expect(overdue == .failed(isWrite ? .outcomeUnknown : .timedOut, isOverdue: true))
            let closed = try await ending(of: method) { table in
                table.sendAll()
                table.close(.closed())
            }
            #expect(closed == .failed(isWrite ? .outcomeUnknown : .unavailable, isOverdue: false))
            let broken = try await ending(of: method) { table in
                table.sendAll()
                table.protocolViolated(CRUDError(.internalError, "invalid"))
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
            table.takeReplied(1)??.continuation.resume(returning: Array("x".utf8))
        }
        #expect(read == .replied("x"))
    }

    @Test func readsAreSentAgainInOrderAndFirst() async throws {
        await withTaskGroup { group in
            let shared = SharedTable()
            let frames = (1...4).map { [UInt8]([0, 0, 0, 1, UInt8($0)]) }
            for (index, frame) in frames.enumerated() {
                let added = Signal()
                group.addTask {
                    _ = try? await withCheckedThrowingContinuation { continuation in
                        shared.table.withLock {
                            $0.add(
                                PendingCall(
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

    @Test func onlyKnowsRequestsThatWereSent() {
        var table = CallTable()
        let isExpected = table.expectsLateReply(to: 1)
        #expect(!isExpected)
    }
}

extension CallTable {
    /// Sends all waiting calls and returns their frames.
    @discardableResult
    fileprivate mutating func sendAll() -> [UInt8] {
        var buffer = ByteBuffer()
        send(into: &buffer, targetBytes: .max, maximumFrameBytes: 100)
        return Array(buffer.readableBytesView)
    }

    /// Whether `id` is that of an abandoned request.
    fileprivate mutating func expectsLateReply(to id: Int) -> Bool {
        guard case .some(.none) = takeReplied(id) else { return false }
        return true
    }
}
