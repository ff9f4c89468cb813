import CRUDPluginABI

/// What the host says of a call that may take long; valid until the call returns.
public struct CallContext {
    /// The clock by which records expire: milliseconds since 1970-01-01 UTC.
    public let now: Int64
    /// When nobody waits any more: nanoseconds of CLOCK_MONOTONIC; nil: no deadline.
    public let deadline: Int64?
    @usableFromInline let interrupted: (@convention(c) (UnsafeMutableRawPointer?) -> Int32)?
    @usableFromInline let context: UnsafeMutableRawPointer?

    init(_ call: UnsafePointer<crudd_call>) {
        let call = fullStruct(call)
        now = call.now
        deadline = call.deadline == 0 ? nil : call.deadline
        interrupted = call.interrupted
        context = call.context
    }

    /// Whether nobody waits for the result any more. Whatever may take longer asks every millisecond or so and then
    /// throws ``StorageFailure/interrupted``.
    @inlinable public var isInterrupted: Bool {
        interrupted.map { $0(context) != 0 } ?? false
    }

    /// Whether a record is no longer there.
    ///
    /// - Parameter expiresAt: milliseconds since 1970-01-01 UTC; 0: never.
    @inlinable
    public func hasExpired(_ expiresAt: Int64) -> Bool {
        expiresAt != 0 && expiresAt <= now
    }
}

/// A request of the host together with the context of its call.
public protocol CallRequest: ~Copyable {
    var call: CallContext { get }
}

extension CallRequest where Self: ~Copyable {
    /// The clock by which records expire: milliseconds since 1970-01-01 UTC.
    @inlinable public var now: Int64 { call.now }
    /// When nobody waits any more: nanoseconds of CLOCK_MONOTONIC; nil: no deadline.
    @inlinable public var deadline: Int64? { call.deadline }
    /// Whether nobody waits for the result any more; see ``CallContext/isInterrupted``.
    @inlinable public var isInterrupted: Bool { call.isInterrupted }
}
