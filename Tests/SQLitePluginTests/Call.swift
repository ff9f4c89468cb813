import CRUDPluginABI
import Synchronization

/// The context of a call.
final class Call {
    /// Where tests do not say otherwise.
    static let now: Int64 = 1_000_000

    private let now: Int64
    /// How often the plugin may ask whether anybody waits before it is told that nobody does.
    private let maximumQuestions: Int
    private let questions = Atomic(0)

    init(now: Int64 = Call.now, maximumQuestions: Int = .max) {
        self.now = now
        self.maximumQuestions = maximumQuestions
    }

    func with<Result, Failure: Error>(
        _ body: (UnsafePointer<crudd_call>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var call = crudd_call()
        call.struct_size = UInt32(MemoryLayout<crudd_call>.size)
        call.now = now
        call.context = Unmanaged.passUnretained(self).toOpaque()
        call.interrupted = { context in
            guard let context else { return 1 }
            let call = Unmanaged<Call>.fromOpaque(context).takeUnretainedValue()
            return call.questions.add(1, ordering: .relaxed).newValue > call.maximumQuestions ? 1 : 0
        }
        return try body(&call)
    }
}
