import CRUDPluginABI
import Synchronization

/// The host that a backend reports to.
final class HostReports: @unchecked Sendable {
    // @unchecked: the struct is constant, and lives as long as this object.
    let pointer: UnsafePointer<crudd_host>
    private let memory: CallMemory
    private let logged = Mutex<[String]>([])
    private let progressed = Atomic(0)
    private let reported = Mutex<[(isUp: Bool, reason: String)]>([])

    init(surplus: Int, expectedStorage: UInt64) {
        memory = CallMemory(surplus: surplus)
        var host = crudd_host()
        host.expected_storage = expectedStorage
        host.log = { context, _, message in
            // The context is this object, which its backend owns.
            Unmanaged<HostReports>.fromOpaque(context!).takeUnretainedValue().append(message.text)
        }
        host.progress = { context, _, _ in
            // As above.
            let reports = Unmanaged<HostReports>.fromOpaque(context!).takeUnretainedValue()
            reports.progressed.add(1, ordering: .relaxed)
        }
        host.state = { context, state, reason in
            // As above.
            let reports = Unmanaged<HostReports>.fromOpaque(context!).takeUnretainedValue()
            reports.reported.withLock { $0.append((state != CRUDD_DOWN, reason.text)) }
        }
        host.changed = { _, _ in }
        let copy = memory.copy(host)
        pointer = UnsafePointer(copy)
        copy.pointee.context = Unmanaged.passUnretained(self).toOpaque()
    }

    deinit { memory.free() }

    /// What was logged so far.
    var lines: [String] { logged.withLock { $0 } }
    /// How often calls have said that they advance.
    var progressCount: Int { progressed.load(ordering: .relaxed) }
    /// The states of the storage that were reported so far.
    var states: [(isUp: Bool, reason: String)] { reported.withLock { $0 } }

    private func append(_ line: String) {
        logged.withLock { $0.append(line) }
    }
}
