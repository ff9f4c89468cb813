import CRUDPluginABI
import CRUDPluginHost

/// Where emitted records go.
final class RecordSink {
    /// What is emitted.
    enum Kind {
        /// Records that are there.
        case records
        /// What was removed as well.
        case changes
        /// Nothing else.
        case removals
    }

    private let kind: Kind
    /// How many ids were asked for; nil: records are counted from 0.
    private let positions: Int?
    private let maximum: Int
    private let keepsRecords: Bool
    private let meanwhile: (() -> Void)?
    private(set) var records: [Int: PluginRecord] = [:]
    private(set) var count = 0
    /// The last record's, in the plugin's own order; 0: they come by id.
    private(set) var position: UInt64 = 0
    /// What the plugin has done that it must not.
    private(set) var violation: String?

    /// - Parameter meanwhile: called with each record, while the plugin's call is in progress.
    init(
        of kind: Kind = .records, positions: Int? = nil, maximum: Int = .max, keepsRecords: Bool = true,
        meanwhile: (() -> Void)? = nil
    ) {
        self.kind = kind
        self.positions = positions
        self.maximum = maximum
        self.keepsRecords = keepsRecords
        self.meanwhile = meanwhile
    }

    /// What ``emit`` is called with; valid as long as this object.
    var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    static let emit: crudd_emit = { context, index, record in
        // The context is the sink of the call, which outlives it.
        Unmanaged<RecordSink>.fromOpaque(context!).takeUnretainedValue().take(index, record) ? 0 : 1
    }

    /// Returns whether to continue.
    private func take(_ index: Int, _ pointer: UnsafePointer<crudd_record>?) -> Bool {
        guard let pointer else {
            violation = "emitted no record"
            return false
        }
        let raw = crudd_record.read(pointer)
        let isRemoved = kind == .removals || Int(raw.flags) & CRUDD_RECORD_REMOVED != 0
        if isRemoved, kind == .records { violation = "emitted a record that was removed" }
        if raw.revision.size == 0, !isRemoved {
            violation = "emitted a record that has no revision, or a wrong `struct_size`"
        }
        if raw.keys != nil { violation = "emitted keys" }
        if count >= maximum { violation = "continued when it was told to stop" }
        if let positions, index >= positions { violation = "emitted position \(index) of \(positions)" }
        if positions == nil, index != count { violation = "emitted record \(count) as \(index)" }
        if positions == nil, count > 0, raw.position <= position, raw.position != 0 || position != 0 {
            violation = "emitted the position \(raw.position) behind \(position)"
        }
        position = raw.position
        if records[index] != nil { violation = "emitted position \(index) twice" }
        count += 1
        if keepsRecords {
            records[index] =
                isRemoved
                ? .removed(raw.id.text, sequence: raw.sequence)
                : PluginRecord(
                    raw.id.text, bytes: raw.item.array, revision: raw.revision.text, expiresAt: raw.expires_at,
                    sequence: raw.sequence)
        }
        meanwhile?()
        return count < maximum
    }
}
