import CRUDPluginABI

/// One change of one record.
package struct PluginMutation {
    private let collection: PluginCollection
    private let kind: Int
    private let id: String
    private let item: [UInt8]
    private let revision: String
    private let precondition: Precondition

    package enum Precondition: Sendable {
        case none, absent, present
        case revision(String)
    }

    package static func put(
        _ id: String, _ item: String, revision: String = "1", if precondition: Precondition = .none,
        in collection: PluginCollection
    ) -> PluginMutation {
        put(id, bytes: Array(item.utf8), revision: revision, if: precondition, in: collection)
    }

    package static func put(
        _ id: String, bytes item: [UInt8], revision: String = "1", if precondition: Precondition = .none,
        in collection: PluginCollection
    ) -> PluginMutation {
        PluginMutation(
            collection: collection, kind: CRUDD_PUT, id: id, item: item, revision: revision, precondition: precondition)
    }

    package static func remove(
        _ id: String, if precondition: Precondition = .none, in collection: PluginCollection
    ) -> PluginMutation {
        PluginMutation(
            collection: collection, kind: CRUDD_REMOVE, id: id, item: [], revision: "", precondition: precondition)
    }

    package static func check(
        _ id: String, if precondition: Precondition, in collection: PluginCollection
    ) -> PluginMutation {
        PluginMutation(
            collection: collection, kind: CRUDD_CHECK, id: id, item: [], revision: "", precondition: precondition)
    }

    /// Memory for what the mutation says, freed with the object.
    var fields: Fields {
        var expected = ""
        if case .revision(let revision) = precondition { expected = revision }
        return Fields([Array(id.utf8), item, Array(revision.utf8), Array(expected.utf8)])
    }

    func raw(_ fields: Fields) -> crudd_mutation {
        var raw = crudd_mutation()
        raw.collection = collection.handle
        raw.kind = UInt32(kind)
        raw.precondition =
            switch precondition {
            case .none: UInt32(CRUDD_IF_ANY)
            case .absent: UInt32(CRUDD_IF_ABSENT)
            case .present: UInt32(CRUDD_IF_PRESENT)
            case .revision: UInt32(CRUDD_IF_REVISION)
            }
        raw.id = fields.bytes[0]
        raw.item = fields.bytes[1]
        raw.revision = fields.bytes[2]
        raw.expected = fields.bytes[3]
        return raw
    }

    /// Copies of bytes at addresses that hold as long as the object.
    final class Fields {
        let bytes: [crudd_bytes]

        init(_ contents: [[UInt8]]) {
            bytes = contents.map { content in
                let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: content.count)
                _ = copy.initialize(fromContentsOf: content)
                return crudd_bytes(data: copy.baseAddress, size: copy.count)
            }
        }

        deinit {
            for bytes in bytes { UnsafeMutablePointer(mutating: bytes.data)?.deallocate() }
        }
    }
}

/// What one mutation came to.
package enum PluginOutcome: Equatable, Sendable {
    case applied(replaced: Bool)
    case mismatch(current: String)
    case refused(Int)

    package static let created = PluginOutcome.applied(replaced: false)
    package static let replaced = PluginOutcome.applied(replaced: true)
    package static let removed = PluginOutcome.applied(replaced: false)
    package static let exists = PluginOutcome.refused(CRUDD_EXISTS)
    package static let notFound = PluginOutcome.refused(CRUDD_NOT_FOUND)
    package static let noSpace = PluginOutcome.refused(CRUDD_NO_SPACE)

    init(_ outcome: crudd_outcome) throws(CallFault) {
        let status = Int(outcome.status)
        switch status {
        case CRUDD_OK where outcome.replaced > 1: throw .breach("`replaced` of an outcome is \(outcome.replaced)")
        case CRUDD_OK: self = .applied(replaced: outcome.replaced != 0)
        case CRUDD_MISMATCH:
            let size = Int(outcome.revision_size)
            guard size <= MemoryLayout.size(ofValue: outcome.revision) else {
                throw .breach("`revision_size` of an outcome is \(size)")
            }
            self = .mismatch(
                current: withUnsafeBytes(of: outcome.revision) { String(decoding: $0.prefix(size), as: UTF8.self) })
        default:
            guard StatusText.isKnown(status) else {
                throw .breach("an outcome has the status \(status), which is none")
            }
            self = .refused(status)
        }
    }
}

extension PluginOutcome: CustomStringConvertible {
    package var description: String {
        switch self {
        case .applied(replaced: true): "CRUDD_OK with `replaced`"
        case .applied(replaced: false): "CRUDD_OK"
        case .mismatch(let current): "CRUDD_MISMATCH with revision \"\(current)\""
        case .refused(let status): StatusText.of(status)
        }
    }
}
